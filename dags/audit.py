"""DAGs ``audit.<source>.<target>`` and ``replay.<source>.<target>`` for every enabled flow of mirror.properties."""

from airmirror.on_airflow.dags.audit import audit_dag, replay_dag
from airmirror.on_airflow.dags.flows import dags_of, enabled_flows

flows = enabled_flows()
globals().update(dags_of(flows, audit_dag))
globals().update(dags_of(flows, replay_dag))

"""One DAG ``decide.<source>.<target>`` for every enabled flow of mirror.properties."""

from airmirror.on_airflow.dags.decide import decide_dag
from airmirror.on_airflow.dags.flows import dags_of, enabled_flows

globals().update(dags_of(enabled_flows(), decide_dag))

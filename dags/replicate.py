"""One DAG ``replicate.<source>.<target>`` for every enabled flow of mirror.properties."""

from airmirror.on_airflow.dags.flows import dags_of, enabled_flows
from airmirror.on_airflow.dags.replicate import replicate_dag

globals().update(dags_of(enabled_flows(), replicate_dag))

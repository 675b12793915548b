"""One DAG ``replicate.<source>.<target>`` for every enabled flow of mirror.properties."""

from airmirror.config import load
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.replicate import dag_id, replicate_dag

for flow in load(deployment().config).enabled:
    globals()[dag_id(flow)] = replicate_dag(flow)

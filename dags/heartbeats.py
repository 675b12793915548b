"""One DAG ``heartbeats.<target>`` for every cluster that heartbeats are written to."""

from itertools import groupby

from airmirror.config.pairs import heartbeat_flows
from airmirror.on_airflow.dags.flows import sound_configuration
from airmirror.on_airflow.dags.heartbeats import dag_id, heartbeats_dag

configuration = sound_configuration()
emitting = heartbeat_flows(configuration) if configuration else ()
ordered = sorted(emitting, key=lambda flow: (flow.target.alias, flow.name))
for target, flows in groupby(ordered, key=lambda flow: flow.target.alias):
    globals()[dag_id(target)] = heartbeats_dag(target, list(flows))

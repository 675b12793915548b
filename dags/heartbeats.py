"""One DAG ``heartbeats.<target>`` for every cluster that heartbeats are written to."""

from contextlib import suppress
from itertools import groupby

from airmirror.config import ConfigurationError, load
from airmirror.config.pairs import heartbeat_flows
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.heartbeats import dag_id, heartbeats_dag

with suppress(ConfigurationError):  # replicate.py is the one that shows what is wrong, once
    emitting = sorted(heartbeat_flows(load(deployment().config)), key=lambda flow: (flow.target.alias, flow.name))
    for target, flows in groupby(emitting, key=lambda flow: flow.target.alias):
        globals()[dag_id(target)] = heartbeats_dag(target, list(flows))

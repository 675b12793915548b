"""One DAG ``decide.<source>.<target>`` for every enabled flow of mirror.properties."""

from contextlib import suppress

from airmirror.config import ConfigurationError, load
from airmirror.on_airflow.decide import decide_dag
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.replicate import decide_id

with suppress(ConfigurationError):  # replicate.py is the one that shows what is wrong, once
    for flow in load(deployment().config).enabled:
        globals()[decide_id(flow)] = decide_dag(flow)

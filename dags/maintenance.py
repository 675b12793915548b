"""The DAG ``maintenance``, where a flow of mirror.properties has ``retention.days``."""

from contextlib import suppress

from airmirror.config import ConfigurationError, load
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.maintenance import DAG_ID, maintenance_dag

with suppress(ConfigurationError):  # replicate.py is the one that shows what is wrong, once
    kept = [flow for flow in load(deployment().config).enabled if flow.settings.get("retention.days")]
    if kept:
        globals()[DAG_ID] = maintenance_dag(kept)

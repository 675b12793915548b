"""DAGs ``audit.<source>.<target>`` and ``replay.<source>.<target>`` for every enabled flow of mirror.properties."""

from contextlib import suppress

from airmirror.config import ConfigurationError, load
from airmirror.on_airflow.audit import audit_dag, audit_id, replay_dag, replay_id
from airmirror.on_airflow.deployment import deployment

with suppress(ConfigurationError):  # replicate.py is the one that shows what is wrong, once
    for flow in load(deployment().config).enabled:
        globals()[audit_id(flow)] = audit_dag(flow)
        globals()[replay_id(flow)] = replay_dag(flow)

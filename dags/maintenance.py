"""The DAG ``maintenance``, where a flow of mirror.properties has ``retention.days``."""

from airmirror.on_airflow.dags.flows import enabled_flows
from airmirror.on_airflow.dags.maintenance import DAG_ID, maintenance_dag

kept = [flow for flow in enabled_flows() if flow.settings.get("retention.days")]
if kept:
    globals()[DAG_ID] = maintenance_dag(kept)

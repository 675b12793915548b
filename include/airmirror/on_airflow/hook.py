"""The hook of connections that hold a Kafka cluster's client settings: Airflow tests them by it."""

from __future__ import annotations

from airflow.sdk import BaseHook

from airmirror.errors import AirmirrorError
from airmirror.on_airflow.provider import CONNECTION, CONNECTION_NAME


class ClusterHook(BaseHook):
    """A cluster by its connection. Tasks have it by ``<cluster>.airflow.conn.id`` and need no hook."""

    conn_name_attr = "conn_id"
    default_conn_name = "airmirror_kafka_default"
    conn_type = CONNECTION
    hook_name = CONNECTION_NAME

    def __init__(self, conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.conn_id = conn_id

    def test_connection(self) -> tuple[bool, str]:
        """Whether the cluster lets us in, and how many topics its user sees, or why not."""
        from airmirror.clusters.admin.client import connect
        from airmirror.config import Cluster
        from airmirror.on_airflow.connections import from_connection

        try:
            topics = connect(from_connection(Cluster(self.conn_id, (), {}), self.conn_id)).topic_names()
        except AirmirrorError as error:
            return False, str(error)
        return True, f"The cluster answers; its user sees {len(topics)} topics."

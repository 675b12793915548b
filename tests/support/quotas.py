"""Quotas of a client id on a cluster, as kafka-configs.sh sets them."""

from __future__ import annotations

from kafka.protocol.admin import AlterClientQuotasRequest

from airmirror.clusters.protocol.connection import Connection
from support.topics import Cluster, bootstrap

CLIENT_QUOTAS = 49


def set_quota(cluster: Cluster, client_id: str, key: str, bytes_a_second: float) -> None:
    """``key``: ``consumer_byte_rate`` or ``producer_byte_rate``. Each window's client ids are its own: nobody else is meant."""
    host, _, port = bootstrap(cluster).rpartition(":")
    entry = AlterClientQuotasRequest.EntryData
    with Connection("any", host, int(port), "quotas") as connection:
        request = AlterClientQuotasRequest(
            entries=[
                entry(
                    entity=[entry.EntityData(entity_type="client-id", entity_name=client_id)],
                    ops=[entry.OpData(key=key, value=bytes_a_second, remove=False)],
                )
            ],
            validate_only=False,
        )
        answer = connection.request(request, connection.version(CLIENT_QUOTAS, 0, 1, "AlterClientQuotas"))
        assert [found.error_code for found in answer.entries] == [0]

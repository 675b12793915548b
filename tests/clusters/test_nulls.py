"""Nulls that Kafka's message definitions do not allow."""

from __future__ import annotations

from typing import Any

from kafka.protocol.metadata import ApiVersionsResponse, FindCoordinatorResponse, MetadataResponse

from airmirror.clusters.protocol.nulls import null_field

VERSION = 12


def metadata(**changes: Any) -> Any:
    of_topic = MetadataResponse.MetadataResponseTopic
    partition = of_topic.MetadataResponsePartition(
        error_code=0,
        partition_index=0,
        leader_id=1,
        leader_epoch=0,
        replica_nodes=[1],
        isr_nodes=[1],
        offline_replicas=[],
    )
    topic = {"error_code": 0, "name": "orders", "partitions": [partition]} | changes.pop("topic", {})
    fields = {"brokers": [], "cluster_id": "id", "topics": [of_topic(**topic)]} | changes
    return MetadataResponse(**fields)


def test_nulls_are_found_wherever_they_are() -> None:
    assert null_field(MetadataResponse, VERSION, metadata()) is None
    assert null_field(MetadataResponse, VERSION, metadata(cluster_id=None)) is None, "it may be null"
    assert null_field(MetadataResponse, VERSION, metadata(brokers=None)) == "brokers"
    assert null_field(MetadataResponse, VERSION, metadata(topic={"name": None})) is None, "from version 12 on"
    assert null_field(MetadataResponse, 10, metadata(topic={"name": None})) == "topics.name"
    assert null_field(MetadataResponse, VERSION, metadata(topic={"partitions": None})) == "topics.partitions"


def test_other_shapes() -> None:
    assert null_field(FindCoordinatorResponse, 4, FindCoordinatorResponse(coordinators=None)) == "coordinators"
    assert null_field(ApiVersionsResponse, 3, ApiVersionsResponse(error_code=0, api_keys=None)) == "api_keys"
    assert null_field(ApiVersionsResponse[3], 3, ApiVersionsResponse(error_code=0, api_keys=[])) is None

"""The members of consumer groups, of both protocols: confluent-kafka asks each group in the protocol that it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException

from airmirror.clusters.admin.client import Admin
from airmirror.partitions import TopicPartition, batches

AT_ONCE = 200  # groups
SECONDS = 30.0


@dataclass(frozen=True)
class Member:
    """A consumer in a group: what it calls itself, the host it comes from, and the partitions it has now."""

    group: str
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


def members_of(admin: Admin, groups: Sequence[str], timeout: float = SECONDS) -> tuple[list[Member], dict[str, str]]:
    """The members of these groups, and the reason for each group that may not be described."""
    found: list[Member] = []
    refused: dict[str, str] = {}
    for names in batches(groups, AT_ONCE):
        asked = admin.client.describe_consumer_groups(names, request_timeout=timeout)
        for name, future in asked.items():
            try:
                described = future.result()
            except KafkaException as error:
                refused[name] = error.args[0].str()
                continue
            for member in described.members:
                given = member.assignment.topic_partitions if member.assignment else []
                partitions = tuple(sorted(TopicPartition(each.topic, each.partition) for each in given))
                found.append(Member(name, member.client_id, member.host.removeprefix("/"), partitions))
    return found, refused

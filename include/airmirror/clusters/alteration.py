"""Configs of topics altered on a cluster: only the keys given, incrementally, topic by topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from airmirror.clusters.admin import BATCH, Admin
from airmirror.clusters.description import ConfigChange
from airmirror.errors import AirmirrorError


@dataclass(eq=False)
class ConfigsRefused(AirmirrorError):
    """Configs of a topic that the cluster does not take; none of them was written."""

    alias: str
    topic: str
    keys: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return (
            f"cluster {self.alias!r}: {', '.join(self.keys)} of topic {self.topic!r} can't be changed: {self.reason}; "
            "name what can't be had in config.properties.exclude, or see that the user may ALTER_CONFIGS"
        )


@dataclass(frozen=True)
class Altered:
    """What became of the changes."""

    changes: tuple[ConfigChange, ...]
    refused: tuple[ConfigsRefused, ...]


def alter_configs(admin: Admin, changes: Sequence[ConfigChange], timeout: float = 60.0) -> Altered:
    """Write the changes; those of one topic are written together or not at all.

    One topic refused holds up no other.
    """
    by_topic = {
        topic: tuple(of_topic)
        for topic, of_topic in groupby(sorted(changes, key=lambda change: change.topic), key=lambda c: c.topic)
    }
    names = list(by_topic)
    done: list[ConfigChange] = []
    refused: list[ConfigsRefused] = []
    for start in range(0, len(names), BATCH):
        resources = [_resource(name, by_topic[name]) for name in names[start : start + BATCH]]
        answers = admin.client.incremental_alter_configs(resources, request_timeout=timeout)
        for resource, future in answers.items():
            error = future.exception()
            if error is None:
                done += by_topic[resource.name]
            else:
                keys = tuple(change.key for change in by_topic[resource.name])
                refused.append(ConfigsRefused(admin.cluster.alias, resource.name, keys, _said(error)))
    return Altered(tuple(done), tuple(refused))


def _resource(topic: str, changes: Sequence[ConfigChange]) -> ConfigResource:
    entries = [
        ConfigEntry(
            change.key,
            change.after,
            incremental_operation=AlterConfigOpType.DELETE if change.after is None else AlterConfigOpType.SET,
        )
        for change in changes
    ]
    return ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)


def _said(error: BaseException) -> str:
    cause = error.args[0] if isinstance(error, KafkaException) else None
    return cause.str() if isinstance(cause, KafkaError) else str(error)

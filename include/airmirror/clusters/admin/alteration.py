"""Configs of topics altered on a cluster: only the keys given, incrementally, topic by topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from airmirror.clusters.admin.client import BATCH, Admin, said, topic_configs
from airmirror.clusters.admin.description import ConfigChange, ConfigValue
from airmirror.clusters.looking import look_again
from airmirror.errors import AirmirrorError
from airmirror.partitions import batches, grouped

SEEN_SECONDS = 5.0
"""How long to wait until a broker shows what the controller has written; it is written all the same."""


class ConfigsRefused(AirmirrorError):
    """Configs of a topic that the cluster does not take; none of them was written."""

    alias: str
    topic: str
    keys: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return (
            f"cluster {self.alias!r}: {', '.join(self.keys)} of topic {self.topic!r} can't be changed: {self.reason}; "
            "grant ALTER_CONFIGS, or list the config in config.properties.exclude"
        )


@dataclass(frozen=True)
class Altered:
    changes: tuple[ConfigChange, ...]
    refused: tuple[ConfigsRefused, ...]


def alter_configs(admin: Admin, changes: Sequence[ConfigChange], timeout: float = 60.0) -> Altered:
    """Write the changes and wait until they show; those of one topic are written together or not at all.

    One topic refused holds up no other. Raises what describe() raises.
    """
    by_topic = grouped((change.topic, change) for change in sorted(changes, key=lambda change: change.topic))
    done: list[ConfigChange] = []
    refused: list[ConfigsRefused] = []
    for names in batches(list(by_topic), BATCH):
        resources = [_resource(name, by_topic[name]) for name in names]
        answers = admin.client.incremental_alter_configs(resources, request_timeout=timeout)
        for resource, future in answers.items():
            error = future.exception()
            if error is None:
                done += by_topic[resource.name]
            else:
                keys = tuple(change.key for change in by_topic[resource.name])
                refused.append(ConfigsRefused(admin.cluster.alias, resource.name, keys, said(error)))
    _wait_until_seen(admin, done)
    return Altered(tuple(done), tuple(refused))


def _wait_until_seen(admin: Admin, changes: Sequence[ConfigChange]) -> None:
    """So that who looks next does not find the same differences again."""

    def unseen() -> bool:
        there = topic_configs(admin, {change.topic for change in changes})
        return any(not _shows(there.get(change.topic, {}).get(change.key), change) for change in changes)

    if changes:
        look_again(unseen, SEEN_SECONDS)


def _shows(value: ConfigValue | None, change: ConfigChange) -> bool:
    """Return whether a change has arrived; a topic that is gone has nothing to show."""
    if value is None:
        return True
    return not value.is_own if change.after is None else value.value == change.after


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

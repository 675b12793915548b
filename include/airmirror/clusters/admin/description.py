"""Topics in plain words: what is on a cluster, and what is to be created there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ConfigValue:
    """One config of a topic. ``source`` in Kafka's words (DYNAMIC_TOPIC_CONFIG, STATIC_BROKER_CONFIG, …)."""

    value: str | None
    source: str
    read_only: bool = False
    sensitive: bool = False

    @property
    def is_default(self) -> bool:
        return self.source == "DEFAULT_CONFIG"

    @property
    def is_own(self) -> bool:
        """Return whether it is set on the topic itself."""
        return self.source == "DYNAMIC_TOPIC_CONFIG"


@dataclass(frozen=True)
class ConfigChange:
    """A topic's config to be written: ``before`` is its effective value now, ``after`` None for the cluster's default."""

    topic: str
    key: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        after = "the cluster's default" if self.after is None else self.after
        return f"{self.topic}: {self.key} from {self.before} to {after}"


@dataclass(frozen=True)
class NewTopic:
    """A topic to create. ``replication_factor`` -1: the brokers' default; ``factor_key``: the configuration's key for it."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)
    factor_key: str = "replication.factor"


@dataclass(frozen=True)
class NewPartitions:
    """A topic to give more partitions: ``partitions`` is the number it has afterwards, ``before`` what it has now."""

    name: str
    before: int
    partitions: int

"""The configuration: clusters, flows between them, and a flow's window. Plain values that can be pickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airmirror.config.errors import FlowNotEnabled, FlowNotNamed, Problem, UnknownComparison, UnknownFlow
from airmirror.config.keys.clients import ROLES
from airmirror.config.settings import Settings
from airmirror.config.values import HIDDEN, is_secret


@dataclass(frozen=True)
class Setting:
    """One ``key = value`` of a file, its config providers resolved. ``line`` is None for an override.

    ``reference``: what the file has where a config provider gave the value.
    """

    key: str
    value: str = field(repr=False)
    line: int | None
    reference: str = field(default="", repr=False)

    @property
    def shown(self) -> str:
        """The value as it may be shown: neither secrets, nor what a config provider gave, nor a notifier's arguments."""
        value = self.reference or self.value
        if self.key.endswith("on.failure.notifier") and " " in value.strip():
            return f"{value.split()[0]} {HIDDEN}"
        return HIDDEN if value and is_secret(self.key) else value


@dataclass(frozen=True)
class Cluster:
    """A Kafka cluster. ``properties``: client settings by Java's names, a role's own like ``consumer.client.id``."""

    alias: str
    bootstrap_servers: tuple[str, ...]
    properties: Mapping[str, str] = field(repr=False)

    def client(self, role: str) -> dict[str, str]:
        """The settings of one kind of client (``admin``, ``consumer`` or ``producer``), by their Java names."""
        common = {name: value for name, value in self.properties.items() if name.partition(".")[0] not in ROLES}
        prefix = f"{role}."
        own = {k.removeprefix(prefix): v for k, v in self.properties.items() if k.startswith(prefix)}
        return {"bootstrap.servers": ",".join(self.bootstrap_servers)} | common | own


@dataclass(frozen=True)
class Window:
    """The extent of one window, and its proof. A field has its key's name with underscores, without a ``window.`` before it."""

    max_ms: int = 120_000
    max_bytes: int | None = None
    commit_bytes: int = 268_435_456
    commit_ms: int = 10_000
    verify: str = "readback"
    largest_batch_bytes: int = 268_435_456
    follow_ms: int = 0
    follow_commit_ms: int = 250
    verify_interval_ms: int = 5_000
    slot_bytes: int = 67_108_864
    throttle_bytes_per_second: int | None = None

    @property
    def longest_ms(self) -> int:
        """Return the longest time that a window copies, whether it follows the log or not."""
        return max(self.max_ms, self.follow_ms)


@dataclass(frozen=True)
class MoveGroup:
    """What a migration moves together; the keys ``<source>-><target>.move.<name>.…``. None: it is discovered.

    ``topics``, ``groups`` and ``transactional_ids`` are names and regular expressions, ``principals`` Kafka's own (``User:ann``).
    """

    name: str
    topics: tuple[str, ...]
    groups: tuple[str, ...] | None = None
    transactional_ids: tuple[str, ...] | None = None
    principals: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Flow:
    """Replication from one cluster to another. Its clusters hold the flow's own client settings too.

    ``remote_topics``: by source topic, where an operator has decided on another remote topic than the policy's. ``returns``:
    topics that the reverse flow has brought to the source, and into which of the target they return. ``tasks_max``: None is
    ``auto``.
    """

    source: Cluster
    target: Cluster
    enabled: bool
    topics: tuple[str, ...]
    topics_exclude: tuple[str, ...]
    replication_policy_class: str
    replication_policy_separator: str
    internal_topic_separator_enabled: bool
    replication_factor: int
    tasks_max: int | None
    window: Window
    settings: Settings = field(repr=False)
    isolation_level: str = "read_committed"
    auto_offset_reset: str = "earliest"
    remote_topics: Mapping[str, str] = field(default_factory=dict)
    returns: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()  # of all clusters of the configuration
    moves: tuple[MoveGroup, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.source.alias}->{self.target.alias}"

    @property
    def reverse_name(self) -> str:
        """The name of the reverse flow."""
        return f"{self.target.alias}->{self.source.alias}"

    @property
    def reads_committed(self) -> bool:
        """Return whether no aborted record of the source is replicated: isolation.level=read_committed."""
        return self.isolation_level == "read_committed"

    @property
    def is_aggregate(self) -> bool:
        """Return whether other flows may write the same remote topics: declared with ``aggregate``."""
        return self.settings.aggregate


@dataclass(frozen=True)
class Comparison:
    """Two clusters that are compared, whoever copied one to the other. A field has its key's name with underscores."""

    name: str
    source: Cluster
    target: Cluster
    topics: tuple[str, ...]
    topics_exclude: tuple[str, ...]
    rename: str
    schedule: str | None
    sample: str | None
    sample_seed: int
    ignore_timestamps: bool
    spark_conn_id: str | None


@dataclass(frozen=True)
class Configuration:
    """One file: its clusters, the flows and comparisons it names, and notes on what in it has no effect."""

    path: str
    clusters: Mapping[str, Cluster]
    flows: Mapping[str, Flow]
    notes: tuple[Problem, ...] = ()
    settings: tuple[Setting, ...] = field(default=(), repr=False)
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)

    def comparison(self, name: str) -> Comparison:
        """The comparison ``compare.<name>``. Raises UnknownComparison."""
        if name not in self.comparisons:
            raise UnknownComparison(self.path, name, tuple(self.comparisons))
        return self.comparisons[name]

    def flow(self, name: str = "") -> Flow:
        """The enabled flow of that name, ``source->target``; no name: the only one that is enabled.

        Raises UnknownFlow, FlowNotEnabled or FlowNotNamed.
        """
        if not name:
            if len(self.enabled) != 1:
                raise FlowNotNamed(self.path, tuple(flow.name for flow in self.enabled))
            return self.enabled[0]
        if name not in self.flows:
            raise UnknownFlow(self.path, name, tuple(self.flows))
        if not self.flows[name].enabled:
            raise FlowNotEnabled(self.path, name)
        return self.flows[name]

    def has_reverse(self, flow: Flow) -> bool:
        """Return whether the reverse flow is enabled: one that is only in the file replicates nothing."""
        return flow.reverse_name in {each.name for each in self.enabled}

    @property
    def enabled(self) -> tuple[Flow, ...]:
        return tuple(flow for flow in self.flows.values() if flow.enabled)

"""The plan of changes on the target that give every topic of a flow its remote topic. Nothing is changed here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from airmirror.clusters.admin.acls import Acl
from airmirror.clusters.admin.description import ConfigChange, ConfigValue, NewPartitions, NewTopic
from airmirror.config import Flow
from airmirror.topics.configs import ConfigDifference, config_differences, remote_configs
from airmirror.topics.names import LONGEST_NAME, select
from airmirror.windows.declared import times_replaced

CREATES, REFRESHES = "topic.creation.enable", "refresh.topics.enabled"


@dataclass(frozen=True)
class Topic:
    """A topic as it is on a cluster; ``configs`` may be empty where they are not needed."""

    partitions: int
    configs: Mapping[str, ConfigValue] = field(default_factory=dict)


@dataclass(frozen=True)
class RefusedTopic:
    """A topic of cluster ``source`` that can't be replicated to cluster ``target``, and the way out."""

    source: str
    target: str
    topic: str
    remote: str
    reason: str

    def __str__(self) -> str:
        return (
            f"topic {self.topic!r} of cluster {self.source!r} can't be replicated to {self.remote!r} on cluster "
            f"{self.target!r}: {self.reason}"
        )


@dataclass(frozen=True)
class UnevenTopic:
    """A remote topic with other partitions than its topic, which is left so. ``key``: what keeps a smaller one from growing."""

    topic: str
    remote: str
    source: int
    target: int
    key: str = ""

    @property
    def reason(self) -> str:
        if self.key:
            return (
                f"{self.key} = false: nothing is replicated from partition {self.target} on until {self.remote} has it"
            )
        return f"partitions never shrink; nothing is replicated to {self.source} and above"

    def __str__(self) -> str:
        what = f"{self.remote} has {self.target} partitions, {self.topic} has {self.source}"
        return f"{what}, and {self.reason}" if self.key else f"{what}: nothing is replicated to {self.source} and above"


@dataclass(frozen=True)
class TopicPlan:
    """``topics``: every source topic that can be replicated, with its remote topic; the rest is what that needs.

    ``differences``: by source topic, the configs that differ between it and its remote topic, to be changed or not.
    ``acls``: to be created; ``acls_not_synced`` says why there can be none. ``configs_unknown``: nothing said which configs the
    target has, so new topics may name others.
    """

    topics: Mapping[str, str]
    create: tuple[NewTopic, ...]
    grow: tuple[NewPartitions, ...]
    refused: tuple[RefusedTopic, ...]
    uneven: tuple[UnevenTopic, ...]
    differences: Mapping[str, tuple[ConfigDifference, ...]] = field(default_factory=dict)
    acls: tuple[Acl, ...] = ()
    acls_not_synced: str = ""
    warnings: tuple[str, ...] = ()
    configs_unknown: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(map(str, sorted(self.uneven, key=lambda each: bool(each.key))))

    @property
    def configs(self) -> tuple[ConfigChange, ...]:
        """The configs of existing remote topics that will be changed."""
        return tuple(each.change for found in self.differences.values() for each in found if each.change)


def plan(
    flow: Flow,
    source: Mapping[str, Topic],
    target: Mapping[str, Topic],
    in_the_way: Mapping[str, str] | None = None,
    known_configs: Collection[str] | None = None,
    refreshes: bool = True,
) -> TopicPlan:
    """Return the flow's changes, given all topics of both clusters by name, and what other flows forbid, by topic.

    ``known_configs``: the keys that the target has, where that is known; a new topic is not refused for any other.
    ``refreshes``: partitions that the source has got are created.
    Asks for the configs of the source topics, and of remote topics that are there already.
    Never shrinks or deletes anything, as MirrorMaker 2 does not.
    """
    chosen = select(flow, source)
    several = {remote for remote, count in Counter(chosen.values()).items() if count > 1}
    taken = {_folded(name): name for name in target}
    topics, create, grow, refused, uneven = {}, [], [], [], []
    differences = {}
    timeless = times_replaced(flow)
    creates = flow.settings.topic_creation_enable
    for topic, remote in chosen.items():
        there = target.get(remote)
        reason = _unusable(remote, several) or (in_the_way or {}).get(topic)
        stamps = timeless.matches(topic)
        reason = reason or (_restamping(there, topic, remote, stamps) if there else _collision(remote, taken))
        reason = reason or (None if there or creates else _not_created(flow, remote, source[topic].partitions))
        if reason:
            refused.append(RefusedTopic(flow.source.alias, flow.target.alias, topic, remote, reason))
            continue
        topics[topic] = remote
        partitions = source[topic].partitions
        if there is None:
            configs = remote_configs(flow, source[topic].configs)
            if known_configs is not None:
                configs = {key: value for key, value in configs.items() if key in known_configs}
            create.append(NewTopic(remote, partitions, flow.replication_factor, configs))
            taken[_folded(remote)] = remote
            continue
        found = tuple(config_differences(flow, remote, source[topic].configs, there.configs, stamps))
        if found and topic not in flow.returns:  # the original's own configs count
            differences[topic] = found
        if there.partitions < partitions and not (creates and refreshes):
            key = REFRESHES if creates else CREATES
            uneven.append(UnevenTopic(topic, remote, partitions, there.partitions, key))
        elif there.partitions < partitions:
            grow.append(NewPartitions(remote, there.partitions, partitions))
        elif there.partitions > partitions:
            uneven.append(UnevenTopic(topic, remote, partitions, there.partitions))
    return TopicPlan(
        topics=topics,
        create=tuple(create),
        grow=tuple(grow),
        refused=tuple(refused),
        uneven=tuple(uneven),
        differences=differences,
        configs_unknown=known_configs is None,
    )


def _not_created(flow: Flow, remote: str, partitions: int) -> str:
    return (
        f"it is missing and {CREATES} = false; create it: `kafka-topics.sh --bootstrap-server "
        f"{','.join(flow.target.bootstrap_servers)} --create --topic {remote} --partitions {partitions}`"
    )


def _unusable(remote: str, several: set[str]) -> str | None:
    if remote in several:
        return "several topics of the source would be written to it; change the policy or exclude all but one"
    if len(remote) > LONGEST_NAME:
        return f"its name has {len(remote)} characters, Kafka takes {LONGEST_NAME}; use a shorter alias, or exclude it"
    if not re.fullmatch(r"[A-Za-z0-9._-]+", remote) or remote in (".", ".."):
        return "Kafka takes letters, digits, '.', '_' and '-' in names; see replication.policy.separator"
    return None


def _collision(remote: str, taken: Mapping[str, str]) -> str | None:
    """Kafka refuses a topic whose metrics would have the names of another's."""
    other = taken.get(_folded(remote))
    return f"the target has {other!r}, which differs in '.' and '_' only; exclude one of them" if other else None


def _restamping(there: Topic, topic: str, remote: str, declared: bool) -> str | None:
    kind = there.configs.get("message.timestamp.type")
    if kind is None or kind.value == "CreateTime" or declared:
        return None
    return (
        f"the target would replace every record's time (message.timestamp.type = {kind.value}); "
        f"set it to CreateTime on {remote!r}, or accept that by naming {topic!r} in topics.log.append.time"
    )


def _folded(name: str) -> str:
    return name.replace(".", "_")

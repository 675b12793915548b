"""The inventory of a cluster: topics, groups and their members, producers, transactional ids, ACLs, quotas, users.

Nothing is written. What this user may not see is told with its reason (``unknown``), and holds up nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from airmirror.clusters.admin.client import connect
from airmirror.clusters.admin.members import Member, members_of
from airmirror.clusters.protocol.connection import UnsupportedBroker
from airmirror.clusters.protocol.described import (
    AclBinding,
    NotDescribed,
    Quota,
    acl_bindings,
    client_quotas,
    log_sizes,
    scram_users,
)
from airmirror.clusters.protocol.errors import FetchFailed, RecordsWithheld
from airmirror.clusters.protocol.groups import (
    GROUPS_AT_ONCE,
    Committed,
    Group,
    GroupsNotRead,
    committed_offsets,
    list_every_group,
)
from airmirror.clusters.protocol.past_transactions import past_transactions
from airmirror.clusters.protocol.producers import (
    ActiveProducer,
    KnownTransaction,
    Producers,
    active_producers,
    known_transactions,
)
from airmirror.clusters.protocol.routes import LeaderNotAvailable, Routes, TopicNotFound
from airmirror.clusters.protocol.topic_configs import topic_configs
from airmirror.config import Cluster
from airmirror.errors import named
from airmirror.naming import ReplicationPolicy
from airmirror.naming.internal import is_mapping_topic
from airmirror.offsets.replicated import Extent, extents
from airmirror.partitions import TopicPartition, batches, grouped

CONFIGS = (
    "cleanup.policy",
    "retention.ms",
    "message.timestamp.type",
    "min.compaction.lag.ms",
    "delete.retention.ms",
    "max.message.bytes",
    "min.insync.replicas",
)
# What may be unknown, by the names that people see.
ACLS, QUOTAS, USERS, SIZES = "ACLs", "client quotas", "users with SCRAM", "sizes of logs"
GROUPS, POSITIONS, PRODUCERS, TRANSACTIONS = "groups", "positions of groups", "producers", "transactional ids"
CONFIGS_KNOWN = "configs of topics"
AT_ONCE = 500  # topics in a request for configs
MEASURED_SECONDS = 2.0  # at least, for rates
READERS = frozenset({"", "classic", "consumer", "streams"})  # kinds of groups that commit offsets

_T = TypeVar("_T")


@dataclass(frozen=True)
class TopicFacts:
    """A topic. ``offsets``: from its logs' starts to their ends, at most as many records; ``bytes`` of one replica, None: not
    known; ``rate``: offsets a second while the inventory was taken; ``configs``: effective values of ``CONFIGS``."""

    name: str
    partitions: int
    replicas: int
    offsets: int
    bytes: int | None
    rate: float
    configs: Mapping[str, str]


@dataclass(frozen=True)
class GroupFacts(Group):
    """A group of any kind; ``topics``: of which it has committed offsets, or that its members read now."""

    topics: tuple[str, ...] = ()
    members: tuple[Member, ...] = ()


@dataclass(frozen=True)
class Inventory:
    """A cluster. ``topics`` are all but internal ones; ``acls`` is None where there is no authorizer, or nothing is known.

    ``unknown``: what could not be read, with the reason. ``past``: topics by the transactional id that has written them in
    transactions that have ended; ``past_unknown``: why that could not be read, which few may.
    """

    alias: str
    cluster_id: str
    brokers: tuple[str, ...]
    topics: Mapping[str, TopicFacts]
    groups: Mapping[str, GroupFacts]
    producers: tuple[ActiveProducer, ...]
    transactions: tuple[KnownTransaction, ...]
    acls: tuple[AclBinding, ...] | None
    quotas: tuple[Quota, ...]
    users: Mapping[str, tuple[str, ...]]
    unknown: Mapping[str, str] = field(default_factory=dict)
    past: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    past_unknown: str = ""


def take(cluster: Cluster, client: str, policy: ReplicationPolicy) -> Inventory:
    """Look at a whole cluster: every question is asked for many topics or groups at once.

    Raises what the cluster raises for its topics: BrokerUnreachable, GroupsNotRead where groups can't be listed.
    """
    unknown: dict[str, str] = {}
    with Routes(cluster, client) as routes:
        routes.refresh(None)
        names = [topic for topic in routes.topics if not _is_internal(topic, policy)]
        began, first = time.monotonic(), extents(routes, routes.keys(names))
        groups = _groups(routes, cluster, unknown)
        producers = _or_unknown(unknown, PRODUCERS, Producers(), lambda: active_producers(routes, first))
        if producers.unknown:
            topics = sorted({key.topic for key in producers.unknown})
            unknown[PRODUCERS] = f"of {named(topics, 3)}: {next(iter(producers.unknown.values()))}; READ on the topics"
        transactions = _or_unknown(unknown, TRANSACTIONS, list[KnownTransaction](), lambda: known_transactions(routes))
        past, past_unknown = _past(routes)
        acls = _or_unknown(unknown, ACLS, None, lambda: acl_bindings(routes))
        quotas: list[Quota] = _or_unknown(unknown, QUOTAS, [], lambda: client_quotas(routes))
        users: dict[str, tuple[str, ...]] = _or_unknown(unknown, USERS, {}, lambda: scram_users(routes))
        sizes = _or_unknown(unknown, SIZES, None, lambda: log_sizes(routes))
        configs: dict[str, dict[str, str]] = _or_unknown(unknown, CONFIGS_KNOWN, {}, lambda: _configs(routes, names))
        time.sleep(max(0.0, MEASURED_SECONDS - (time.monotonic() - began)))  # a rate needs some time
        took, last = time.monotonic() - began, extents(routes, first)
        topics_ = {
            name: _topic(routes, name, first, last, took=took, sizes=sizes, configs=configs.get(name, {}))
            for name in names
        }
        return Inventory(
            alias=cluster.alias,
            cluster_id=routes.cluster_id,
            brokers=tuple(sorted(routes.endpoints)),
            topics=topics_,
            groups=groups,
            producers=tuple(producers.found),
            transactions=tuple(transactions),
            acls=None if acls is None else tuple(acls),
            quotas=tuple(quotas),
            users=users,
            unknown=unknown,
            past=past,
            past_unknown=past_unknown,
        )


def _topic(
    routes: Routes,
    name: str,
    first: Mapping[TopicPartition, Extent],
    last: Mapping[TopicPartition, Extent],
    *,
    took: float,
    sizes: Mapping[TopicPartition, int] | None,
    configs: Mapping[str, str],
) -> TopicFacts:
    keys = routes.keys([name])
    ends = [(last[key].start, first[key].end, last[key].end) for key in keys if key in first and key in last]
    return TopicFacts(
        name=name,
        partitions=len(keys),
        replicas=max((routes.leader(key).replicas for key in keys if routes.is_led(key)), default=0),
        offsets=sum(max(0, end - start) for start, _, end in ends),
        bytes=None if sizes is None else sum(sizes.get(key, 0) for key in keys),
        rate=sum(max(0, end - before) for _, before, end in ends) / took,
        configs=dict(configs),
    )


def _groups(routes: Routes, cluster: Cluster, unknown: dict[str, str]) -> dict[str, GroupFacts]:
    listed = sorted(list_every_group(routes), key=lambda each: each.name)
    committed, refused = _committed(routes, [each.name for each in listed if each.kind in READERS])
    # Members of other kinds are described by requests of their own, which no client here has.
    may_have = [each for each in listed if each.kind in ("", "classic", "consumer") and not each.is_idle]
    asked = [each.name for each in may_have if each.protocol in ("", "consumer")]
    members, denied = members_of(connect(cluster), [name for name in asked if name not in refused])
    if refused or denied:
        reasons = refused | denied
        unknown[GROUPS] = f"of {named(sorted(reasons), 3)}: {next(iter(reasons.values()))}"
    by_group, found = grouped((member.group, member) for member in members), {}
    for each in listed:
        its = by_group.get(each.name, [])
        topics = {key.topic for key in committed.get(each.name, {})} | {k.topic for m in its for k in m.partitions}
        found[each.name] = GroupFacts(
            each.name, each.state, each.kind, each.protocol, tuple(sorted(topics)), tuple(its)
        )
    return found


def _past(routes: Routes) -> tuple[dict[str, tuple[str, ...]], str]:
    """Return the topics of past transactions by their id, or why these can't be read."""
    try:
        return {name: tuple(sorted(its)) for name, its in sorted(past_transactions(routes).items())}, ""
    except (FetchFailed, RecordsWithheld, LeaderNotAvailable, TopicNotFound) as error:
        return {}, str(error)


def _committed(
    routes: Routes, names: Sequence[str]
) -> tuple[dict[str, dict[TopicPartition, Committed]], dict[str, str]]:
    """Return what the groups have committed; one that this user may not describe is left out, with its reason.

    A denied group fails the request that it is in: only then its neighbours are asked for one by one.
    """
    found, refused = dict[str, dict[TopicPartition, Committed]](), dict[str, str]()
    left = list(batches(names, GROUPS_AT_ONCE))
    while left:
        part = left.pop()
        try:
            found |= committed_offsets(routes, part)
        except GroupsNotRead as error:
            if error.transient:
                raise
            if len(part) == 1:
                refused[part[0]] = str(error)
            else:
                left += [[name] for name in part]
    return found, refused


def _configs(routes: Routes, names: Sequence[str]) -> dict[str, dict[str, str]]:
    parts = batches(names, AT_ONCE)
    return {name: its for part in parts for name, its in topic_configs(routes, part, CONFIGS).items()}


def _or_unknown(unknown: dict[str, str], what: str, without: _T, ask: Callable[[], _T]) -> _T:
    try:
        return ask()
    except (NotDescribed, UnsupportedBroker, FetchFailed) as error:
        unknown[what] = str(error)
        return without


def _is_internal(topic: str, policy: ReplicationPolicy) -> bool:
    """Return whether it is Kafka's, Connect's, MirrorMaker 2's or Airmirror's own: these do not move."""
    own = policy.is_internal_topic(topic) or policy.is_heartbeats_topic(topic) or policy.is_checkpoints_topic(topic)
    return own or is_mapping_topic(topic) or topic.startswith("__")

"""Consumer groups of a cluster: listed, their offsets fetched many groups a request and committed one request a group.

By kafka-python's protocol classes, because confluent-kafka takes one group a call. Groups of the classic protocol, of the new
one (KIP-848) and of Kafka Streams' own (KIP-1071) are asked alike; share groups have no offsets of that kind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka.protocol.admin.acl import ACLOperation
from kafka.protocol.admin.groups import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer.group import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest

from airmirror.clusters.protocol.asking import PATIENCE_SECONDS, Versions, ask_each, ask_node, each_partition
from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.errors import error_name
from airmirror.clusters.protocol.routes import GROUP, CoordinatorNotAvailable, Routes, patiently
from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition, grouped

OFFSET_COMMIT = (8, 6, 9, "OffsetCommit")
OFFSET_FETCH = (9, 6, 9, "OffsetFetch")
DESCRIBE_GROUPS = (15, 3, 5, "DescribeGroups")  # later ones know nothing of a group to come
LIST_GROUPS = (16, 4, 5, "ListGroups")
OFFSET_DELETE = (47, 0, 0, "OffsetDelete")
GROUPS_AT_ONCE = 100  # of an OffsetFetch

_COORDINATOR_MOVED = frozenset({14, 15, 16})  # loading, not available, not the coordinator
_NOT_FOUND = 69
_UNSTABLE = 88  # an open transaction holds the offset
DENIED = frozenset({29, 30, 31})  # of a topic, a group, the cluster
# Illegal generation, unknown member, non-empty group, group that subscribes to the topic, fenced member epoch.
MEMBERS_ACTIVE = frozenset({22, 25, 68, 86, 110})
STREAMS, SHARE = "streams", "share"
_KINDS = frozenset({"", "classic", "consumer", STREAMS})  # of groups that commit offsets; older brokers name no type
_PROTOCOLS = frozenset({"", "consumer", STREAMS})  # not Connect's workers, which keep theirs in a topic


class GroupsNotRead(AirmirrorError):
    """A broker that does not say which groups it has, or where they stand; ``code`` is Kafka's."""

    cluster: str
    group: str
    code: int

    @property
    def transient(self) -> bool:  # type: ignore[override]
        return self.code not in DENIED

    def __str__(self) -> str:
        what = f"the offsets of group {self.group!r}" if self.group else "its consumer groups"
        return (
            f"cluster {self.cluster!r} does not return {what}: {error_name(self.code)}; "
            "the user needs DESCRIBE on the cluster or the groups, or leave the group out with groups.exclude"
        )


@dataclass(frozen=True)
class Group:
    """A group as its coordinator lists it; ``state`` in Kafka's words (Empty, Stable, …).

    ``kind``: "classic", "consumer", "share", "streams", or "" (old brokers). ``protocol``: what a classic group's members
    agree on ("consumer", "connect"); empty for one that a tool has made.
    """

    name: str
    state: str
    kind: str = ""
    protocol: str = ""

    @property
    def is_idle(self) -> bool:
        """Return whether the group has no members, so that its offsets may be written from outside."""
        return self.state in ("Empty", "Dead")

    @property
    def commits_offsets(self) -> bool:
        """Return whether its positions are committed offsets, which can be followed and moved."""
        return self.kind in _KINDS and self.protocol in _PROTOCOLS


@dataclass(frozen=True)
class Committed:
    """An offset that a group has committed: the next one to read, and its consumer's metadata."""

    offset: int
    metadata: str = ""


Offsets = Mapping[TopicPartition, Committed]


def list_groups(routes: Routes) -> dict[str, Group]:
    """The groups of a cluster that commit offsets, by name. Raises GroupsNotRead, BrokerUnreachable."""
    return {item.name: item for item in list_every_group(routes) if item.commits_offsets}


def list_every_group(routes: Routes) -> list[Group]:
    """The groups of a cluster of whatever kind. Raises GroupsNotRead, BrokerUnreachable."""
    nodes = ask_each(routes, partial(groups_at, routes), GroupsNotRead)
    return list({item.name: item for listed in nodes for item in listed}.values())


def groups_at(routes: Routes, node: int) -> list[Group]:
    """The groups that a node coordinates. Raises GroupsNotRead, BrokerUnreachable."""
    version = routes.connection(node).version(*LIST_GROUPS)
    [answer] = ask_node(routes, node, [ListGroupsRequest(states_filter=[], types_filter=[])], LIST_GROUPS)
    if answer.error_code:
        raise GroupsNotRead(routes.alias, "", answer.error_code)
    return [
        Group(item.group_id, item.group_state, item.group_type.lower() if version >= 5 else "", item.protocol_type)
        for item in answer.groups
    ]


def committed_offsets(
    routes: Routes, groups: Collection[str], held: list[tuple[str, TopicPartition]] | None = None
) -> dict[str, dict[TopicPartition, Committed]]:
    """Return the committed offsets of each of ``groups``, of all topics; none for a group that does not exist.

    ``held``: is given those that open transactions hold, which are left out then (brokers from 2.5 on); None: they are as they
    were before these. Raises GroupsNotRead, CoordinatorNotAvailable, BrokerUnreachable.
    """
    found: dict[str, dict[TopicPartition, Committed]] = {}

    def ask(node: int, names: Sequence[str]) -> None:
        version = routes.connection(node).version(*OFFSET_FETCH)
        fetches = _fetches(names, version, is_stable=held is not None and version >= 7)
        answers = ask_node(routes, node, fetches, OFFSET_FETCH)
        groups = [group for answer in answers for group in answer.groups] if version >= 8 else answers
        for name, group in zip(names, groups, strict=True):
            _raise_if_moved(routes, name, group.error_code)
            if group.error_code not in (0, _NOT_FOUND):
                raise GroupsNotRead(routes.alias, name, group.error_code)
            found[name] = _offsets(group)
            if held is not None:
                held.extend((name, key) for key, item in each_partition(group.topics) if item.error_code == _UNSTABLE)

    _at_coordinators(routes, groups, found, ask)
    return found


def _fetches(names: Sequence[str], version: int, *, is_stable: bool) -> list[Any]:
    if version < 8:  # brokers before 3.0: one group a request, pipelined
        return [OffsetFetchRequest(group_id=name, topics=None, require_stable=is_stable) for name in names]
    of_group = OffsetFetchRequest.OffsetFetchRequestGroup
    return [
        OffsetFetchRequest(
            groups=[
                of_group(group_id=name, member_id=None, member_epoch=-1, topics=None)
                for name in names[start : start + GROUPS_AT_ONCE]
            ],
            require_stable=is_stable,
        )
        for start in range(0, len(names), GROUPS_AT_ONCE)
    ]


def _offsets(group: Any) -> dict[TopicPartition, Committed]:
    return {
        key: Committed(item.committed_offset, item.metadata or "")
        for key, item in each_partition(group.topics)
        if item.error_code == 0 and item.committed_offset >= 0
    }


def commit_offsets(routes: Routes, offsets: Mapping[str, Offsets]) -> dict[tuple[str, TopicPartition], int]:
    """Write offsets for groups that have no members; a group that is not there is made. Kafka's error, by partition.

    Groups with members refuse (MEMBERS_ACTIVE). Raises CoordinatorNotAvailable, GroupsNotRead, BrokerUnreachable.
    """
    return _write(routes, offsets, lambda name: _commit(name, offsets[name]), OFFSET_COMMIT)


def not_committable(routes: Routes, groups: Collection[str]) -> list[str]:
    """Those of these groups, there or not, for which this user may not write offsets: asked, nothing is written.

    Raises CoordinatorNotAvailable, GroupsNotRead for one that it may not describe, BrokerUnreachable.
    """
    may: dict[str, bool] = {}

    def ask(node: int, names: Sequence[str]) -> None:
        asked = [DescribeGroupsRequest(groups=[name], include_authorized_operations=True) for name in names]
        for name, answer in zip(names, ask_node(routes, node, asked, DESCRIBE_GROUPS), strict=True):
            [group] = answer.groups
            _raise_if_moved(routes, name, group.error_code)
            rights = group.authorized_operations  # None: this broker does not tell
            may[name] = not group.error_code and (rights is None or ACLOperation.READ in rights)

    _at_coordinators(routes, groups, may, ask)
    return sorted(name for name, is_allowed in may.items() if not is_allowed)


def delete_offsets(
    routes: Routes, partitions: Mapping[str, Collection[TopicPartition]]
) -> dict[tuple[str, TopicPartition], int]:
    """Delete committed offsets of groups that have no members, as if they had never read there. Kafka's error, by partition.

    Raises CoordinatorNotAvailable, GroupsNotRead, BrokerUnreachable.
    """
    return _write(routes, partitions, lambda name: _delete(name, partitions[name]), OFFSET_DELETE)


def _write(
    routes: Routes,
    partitions: Mapping[str, Collection[TopicPartition]],
    request: Callable[[str], Any],
    versions: Versions,
) -> dict[tuple[str, TopicPartition], int]:
    """Send the request of each group to its coordinator. Kafka's error, by partition: that of the group counts for all."""
    errors: dict[tuple[str, TopicPartition], int] = {}
    done: set[str] = set()

    def ask(node: int, names: Sequence[str]) -> None:
        answers = ask_node(routes, node, map(request, names), versions)
        for name, answer in zip(names, answers, strict=True):
            of_group = getattr(answer, "error_code", 0)
            codes = {partition: item.error_code for partition, item in each_partition(answer.topics or ())}
            _raise_if_moved(routes, name, of_group, *codes.values())
            if of_group not in (0, _NOT_FOUND):
                errors.update({(name, partition): of_group for partition in partitions[name]})
            errors.update({(name, partition): code for partition, code in codes.items() if code})
            done.add(name)

    _at_coordinators(routes, partitions, done, ask)
    return errors


def _raise_if_moved(routes: Routes, name: str, *codes: int) -> None:
    """Raise CoordinatorNotAvailable where a code says that a group has another coordinator now."""
    for code in sorted(_COORDINATOR_MOVED.intersection(codes)):
        raise CoordinatorNotAvailable(routes.alias, name, code, error_name(code))


def _delete(name: str, partitions: Collection[TopicPartition]) -> Any:
    of_topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    topics = grouped((topic, of_topic.OffsetDeleteRequestPartition(partition_index=at)) for topic, at in partitions)
    return OffsetDeleteRequest(
        group_id=name, topics=[of_topic(name=topic, partitions=numbers) for topic, numbers in topics.items()]
    )


def _commit(name: str, offsets: Offsets) -> Any:
    of_topic = OffsetCommitRequest.OffsetCommitRequestTopic
    of_partition = of_topic.OffsetCommitRequestPartition
    topics = grouped(
        (
            topic,
            of_partition(
                partition_index=number,
                committed_offset=committed.offset,
                committed_leader_epoch=-1,
                committed_metadata=committed.metadata,
            ),
        )
        for (topic, number), committed in offsets.items()
    )
    return OffsetCommitRequest(
        group_id=name,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[of_topic(name=topic, partitions=partitions) for topic, partitions in topics.items()],
    )


def _at_coordinators(
    routes: Routes, groups: Iterable[str], done: Collection[str], ask: Callable[[int, Sequence[str]], None]
) -> None:
    """Ask every coordinator for its groups; those whose coordinator has moved are asked for again.

    Raises GroupsNotRead for one that this user may not describe.
    """
    for attempt in patiently(PATIENCE_SECONDS, CoordinatorNotAvailable, BrokerUnreachable):
        with attempt:
            left = sorted(name for name in groups if name not in done)
            try:
                nodes = routes.coordinators(left, GROUP) if left else {}
            except CoordinatorNotAvailable as error:
                if error.error in DENIED:
                    raise GroupsNotRead(routes.alias, error.name, error.error) from error
                raise
            for node, names in grouped((node, name) for name, node in nodes.items()).items():
                ask(node, names)


# Levels of metadata.version: 4.1-IV0, the first with streams groups, and 4.2-IV1. 4.2.0 and 4.2.1 can't be distinguished.
WITHOUT_MEND = range(26, 29 + 1)


def may_break(routes: Routes) -> bool:
    """Return whether a broker's coordinator may fail on a streams group that was given positions before its first member came.

    Positions for a group that does not exist make a classic group without a record of its own. When a Kafka Streams application
    then joins, Kafka 4.2.0 writes the group's topology behind these positions; once the log was compacted, whoever loads it
    finds them first: "Group X is not a streams group", and no group of that partition of __consumer_offsets is served any more
    (KAFKA-20254, mended in 4.2.1). Raises BrokerUnreachable.
    """
    routes.refresh([])
    newest = (routes.connection(node).supported.get("metadata.version", 0) for node in routes.nodes)
    return any(level in WITHOUT_MEND for level in newest)

"""All groups, and offsets of groups that no open transaction holds: for whoever moves groups for good.

A broker lists the groups that it has loaded. Those of a partition of __consumer_offsets without a leader, or whose leader has
not loaded it yet, are in no answer, and no answer has an error: only when it is asked for by its name, a group has one.

A consumer that writes in transactions commits its positions with them. Until such a transaction has ended a broker tells the
position before it, or, asked as here, that it is not stable yet (KIP-447).
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace

from airmirror.clusters.protocol.connection import UnsupportedBroker
from airmirror.clusters.protocol.groups import Committed, Group, GroupsNotRead, committed_offsets, list_groups
from airmirror.clusters.protocol.producers import known_transactions
from airmirror.clusters.protocol.routes import KNOWN_SECONDS, Routes, TopicNotDescribed, TopicNotFound, patiently
from airmirror.errors import AirmirrorError, listed, named
from airmirror.partitions import TopicPartition

STABLE_SECONDS = 30.0
OFFSETS_TOPIC = "__consumer_offsets"
ITS_PARTITIONS = 200  # where this user may not ask how many; 50 by default

log = logging.getLogger(__name__)


class OffsetsHeld(AirmirrorError, transient=True):
    """Positions of groups that transactions hold which do not end. ``holders``: transactional ids that may be theirs."""

    cluster: str
    seconds: float
    positions: tuple[str, ...]
    holders: tuple[str, ...] = ()

    def __str__(self) -> str:
        whose = f"that of {named(self.holders)}" if self.holders else "theirs"
        return (
            f"cluster {self.cluster!r}: open transactions have held positions of groups for {self.seconds:.0f} s, so that "
            f"they can't be read. Wait until the transaction has ended, or end it: {whose} "
            f"(`kafka-transactions.sh find-hanging` shows those that no coordinator ends)\n{listed(self.positions)}"
        )


def all_groups(routes: Routes) -> dict[str, Group]:
    """Return what ``list_groups`` does, when all partitions of __consumer_offsets are served: a group of each is asked for.

    Raises CoordinatorNotAvailable, GroupsNotRead, BrokerUnreachable.
    """
    try:
        committed_offsets(routes, in_each_partition(_partitions(routes)))
    except GroupsNotRead as error:
        if error.transient:
            raise
        log.warning("It is not known whether all groups are listed: %s", error)
    return list_groups(routes)


def _partitions(routes: Routes) -> int:
    """Return how many partitions of groups there are; 0: no group has ever been here, and asking for one would make them."""
    with suppress(TopicNotFound):
        for attempt in patiently(KNOWN_SECONDS, TopicNotFound):
            with attempt:
                missing = routes.refresh_existing([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
                if isinstance(missing, TopicNotDescribed):
                    return ITS_PARTITIONS
                if missing is not None:
                    raise missing
    return routes.partitions(OFFSETS_TOPIC)


def in_each_partition(partitions: int) -> list[str]:
    """Names of groups, one for each partition of groups: Kafka takes Java's hash of the name, which is one more each time."""
    pairs = (divmod(number, 31) for number in range(partitions))
    return [f"airmirror-asks-whether-all-groups-are-listed-{chr(65 + high)}{chr(65 + low)}" for high, low in pairs]


def stable_offsets(
    routes: Routes, groups: Collection[str], topics: Collection[str]
) -> dict[str, dict[TopicPartition, Committed]]:
    """Return what ``committed_offsets`` does, when no transaction holds an offset in ``topics`` any more.

    Raises OffsetsHeld after ``STABLE_SECONDS``, and what ``committed_offsets`` does.
    """
    found: dict[str, dict[TopicPartition, Committed]] = {}
    left = set(groups)
    try:
        for attempt in patiently(STABLE_SECONDS, OffsetsHeld):
            with attempt:
                held: list[tuple[str, TopicPartition]] = []
                found |= committed_offsets(routes, left, held)
                held = [(group, key) for group, key in held if key.topic in topics]
                left = {group for group, _ in held}
                if held:
                    words = tuple(f"{group} in {key}" for group, key in sorted(held))
                    raise OffsetsHeld(routes.alias, STABLE_SECONDS, words)
    except OffsetsHeld as error:
        raise replace(error, holders=_holders(routes)) from None
    return found


def _holders(routes: Routes) -> tuple[str, ...]:
    """Return the transactional ids whose open transactions hold positions of any group, as far as this user may see them."""
    try:
        known = known_transactions(routes)
    except UnsupportedBroker:
        return ()
    return tuple(each.transactional_id for each in known if any(key.topic == OFFSETS_TOPIC for key in each.partitions))

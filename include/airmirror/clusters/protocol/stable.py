"""Offsets of groups that no open transaction holds: who decides by them must not read those that are about to change.

A consumer that writes in transactions commits its positions with them. Until such a transaction has ended a broker tells the
position before it, or, asked as here, that it is not stable yet (KIP-447).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from airmirror.clusters.protocol.connection import UnsupportedBroker
from airmirror.clusters.protocol.groups import Committed, committed_offsets
from airmirror.clusters.protocol.producers import known_transactions
from airmirror.clusters.protocol.routes import Routes, patiently
from airmirror.errors import AirmirrorError, listed, named
from airmirror.partitions import TopicPartition

STABLE_SECONDS = 30.0
OFFSETS_TOPIC = "__consumer_offsets"


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

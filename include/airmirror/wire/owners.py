"""The record of the mapping topic that says who may write a topic now: one a topic, and one for the whole flow.

It lies on the cluster that holds the copy: it can be written when the source is gone, and the reverse flow
reads it there. Freezing, failing over and back, migrating, and what undoes them, are transitions of it: ``NEXT`` has all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import ClassVar

from airmirror.wire.fields import INT64, REASON, STRING, Fields, MappingTopicRecord, enumerated, fields

WHOLE = ""  # the topic of the record of the whole flow


class Owner(IntEnum):
    """The one side on which a topic is written: what is written there is copied to the other one."""

    SOURCE = 0  # windows of the flow copy it
    TARGET = 1  # applications write to the remote topic, no window copies it
    RETURNING = 2  # as TARGET, and windows of the reverse flow copy it back
    RETURNED = 3  # no application writes anywhere, no window copies: groups are moved, what returned is accounted for


class OrderScope(IntEnum):
    """The extent of the order that a record was written by."""

    FLOW = 0  # of the whole flow: the topic goes with it
    TOPIC = 1  # it named the topic: orders for the whole flow leave it as it is, as long as it is not the source's


@dataclass(frozen=True)
class Ownership(MappingTopicRecord):
    """Who may write ``topic`` of the source (``WHOLE``: all that has no record of its own), and by whose order.

    ``remote``: its remote topic, where it returns, or did. ``window``: the lease under which it was written, which has fenced
    every window before it (invariant B). ``frozen_ms``: when it was taken from the source last, 0: never;
    ``frozen_offset``: where the lease of that lies in the mapping topic, -1: never. What came since lies after it: clocks differ.
    """

    kind: ClassVar[int] = 8
    key_fields: ClassVar[Fields] = fields(topic=STRING)
    value_fields: ClassVar[Fields] = fields(
        owner=enumerated(Owner, "owner"),
        scope=enumerated(OrderScope, "scope"),
        remote=STRING,
        window=STRING,
        time_ms=INT64,
        frozen_ms=INT64,
        frozen_offset=INT64,
        reason=REASON,
        by=STRING,
    )

    topic: str
    owner: Owner
    scope: OrderScope
    remote: str
    window: str
    time_ms: int
    frozen_ms: int
    frozen_offset: int
    reason: str
    by: str


class Change(StrEnum):
    """The transitions."""

    FREEZE = "freeze"  # a failover, a cut-over of producers, a person: no window writes to the remote topic any more
    UNFREEZE = "unfreeze"  # what undoes that: windows resume
    BEGIN = "begin"  # what is written over there returns from now on
    END = "end"  # no window copies back any more; who does this, or continues after it, fences those that still might
    GIVE_UP = "give up"  # not all has returned: applications stay over there
    FINISH = "finish"  # what returned is accounted for: windows resume after it


NEXT: Mapping[Change, Mapping[Owner, Owner]] = {
    Change.FREEZE: {Owner.SOURCE: Owner.TARGET},
    Change.UNFREEZE: {Owner.TARGET: Owner.SOURCE},
    Change.BEGIN: {Owner.TARGET: Owner.RETURNING, Owner.RETURNED: Owner.RETURNING},
    Change.END: {Owner.RETURNING: Owner.RETURNED},
    Change.GIVE_UP: {Owner.RETURNED: Owner.TARGET},
    # From TARGET: of what had nothing to return.
    Change.FINISH: {Owner.RETURNED: Owner.SOURCE, Owner.TARGET: Owner.SOURCE},
}
BACK = (Owner.RETURNING, Owner.RETURNED)  # of a topic that has a way to go before windows copy it again


@dataclass(frozen=True)
class Owners:
    """The records of a flow by topic: a topic's own one, else that of the flow, else the source owns it."""

    records: Mapping[str, Ownership] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Ownership]) -> Owners:
        """Of records in log order: of each topic the last one counts."""
        return cls({each.topic: each for each in records})

    def record(self, topic: str) -> Ownership | None:
        return self.records.get(topic) or self.records.get(WHOLE)

    def owner(self, topic: str) -> Owner:
        found = self.record(topic)
        return Owner.SOURCE if found is None else found.owner

    @property
    def whole(self) -> Ownership | None:
        """The record that freezes the flow, with all that it will ever replicate; None: it is not frozen."""
        return self.why_frozen(WHOLE)

    @property
    def shut(self) -> Ownership | None:
        """The same where no topic is unfrozen by a record of its own: no window has anything to do."""
        return None if any(each.owner is Owner.SOURCE for each in self.records.values()) else self.whole

    def why_frozen(self, topic: str) -> Ownership | None:
        """The record by which no window writes to a topic's remote topic; None: windows do."""
        found = self.record(topic)
        return found if found is not None and found.owner is not Owner.SOURCE else None

    @property
    def frozen(self) -> dict[str, Ownership]:
        """The records by which something is frozen, by topic (``WHOLE``: the flow)."""
        return {topic: each for topic, each in self.records.items() if each.owner is not Owner.SOURCE}

    def returning(self, among: Collection[Owner] = BACK) -> dict[str, str]:
        """The remote topics that return, each with the topic of the source."""
        return {each.remote: topic for topic, each in self.records.items() if each.owner in among}

    def returning_by(self, topics: Collection[str]) -> dict[str, str]:
        """The same of those that an order for ``topics`` names; none: for the whole flow."""
        return {
            remote: topic
            for remote, topic in self.returning().items()
            if (topic in topics if topics else not self.is_apart(topic))
        }

    def is_apart(self, topic: str) -> bool:
        """Return whether orders for the whole flow leave a topic as it is: another order, that named it, counts."""
        found = self.records.get(topic)
        return found is not None and found.scope is OrderScope.TOPIC and found.owner is not Owner.SOURCE


@dataclass(frozen=True)
class Signed:
    """Who writes records of owners: under which lease, which lies at ``offset`` of the mapping topic, when, why, and by whose
    order."""

    window: str
    offset: int
    time_ms: int
    reason: str
    by: str


def named(owners: Owners, topics: Collection[str]) -> list[str]:
    """Return what an order names: ``topics``; none: the flow, with all topics that have a record and are not apart."""
    return sorted(topics or {WHOLE, *(topic for topic in owners.records if not owners.is_apart(topic))})


def changed(
    owners: Owners,
    change: Change,
    which: Collection[str],
    signed: Signed,
    *,
    scope: OrderScope,
    remote: Mapping[str, str] | None = None,
) -> list[Ownership]:
    """The records that a change writes. What is done already, or leads nowhere from a topic's owner, changes nothing:
    whoever orders it has asked before. ``remote``: the remote topics of those that begin to return."""
    found = []
    for topic in sorted(which):
        before, new = owners.record(topic), NEXT[change].get(owners.owner(topic))
        if new is None:
            continue
        own = before if before is not None and before.topic == topic else None
        found.append(
            Ownership(
                topic=topic,
                owner=new,
                scope=scope,
                remote=(remote or {}).get(topic, own.remote if own else ""),
                window=signed.window,
                time_ms=signed.time_ms,
                frozen_ms=signed.time_ms if change is Change.FREEZE else before.frozen_ms if before else 0,
                frozen_offset=signed.offset if change is Change.FREEZE else before.frozen_offset if before else -1,
                reason=signed.reason.strip(),
                by=signed.by.strip(),
            )
        )
    return found


def after(owners: Owners, written: Iterable[Ownership]) -> Owners:
    """The owners when these records are written too."""
    return Owners({**owners.records, **{each.topic: each for each in written}})

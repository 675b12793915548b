"""Judgement of what is committed, from the target alone: the source may be gone for ever (invariant F).

Every mapping record that no gate has judged is read back and compared with its digest, in order, up to the first that differs.
What differs can't be compared with the source: it stays unverified, and groups stay before it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.topic_configs import compacted_now
from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import Opened
from airmirror.ledger.state import State
from airmirror.partitions import PartitionFacts
from airmirror.windows.compare import is_on_target
from airmirror.windows.coverage import account_error
from airmirror.windows.declared import may_lack
from airmirror.windows.fence import GrantedLease, leased
from airmirror.windows.judging import ENGINE_ALONE
from airmirror.windows.mirror import Journal
from airmirror.wire.mappings import MappingRecord, Verified


@dataclass(frozen=True)
class Unproven(PartitionFacts):
    """Committed source offsets ``first`` to ``last`` of a partition that are not proven on the target, and why."""

    first: int
    last: int
    reason: str


def verify_alone(opened: Opened, window: str) -> list[Unproven]:
    """Write the verified offset of all that is as its digest says; what is not. Done again, it judges what is left.

    Under a lease of the name ``window``; a flow that is frozen is judged too. Raises FlowBusy, SlotFenced, or the target's error.
    """
    with (
        Journal.open(opened.flow, opened.ledger, "failover") as journal,
        leased(journal, window, slots=0, frozen_too=True) as granted,
    ):
        marks, left = verified_alone(journal, journal.current_state(), window)
        _write(granted, [(mark.encode_key(), mark.encode_value()) for mark in marks])
        journal.catch_up()
    return left


def verified_alone(journal: Journal, state: State, window: str) -> tuple[list[Verified], list[Unproven]]:
    """The verified offsets that what is committed bears out, and what it does not. Only the target is read.

    ``state``: of the journal, which has caught up. Raises the target's error.
    """
    seen, unverified = journal.seen(), journal.index.unverified()
    compacted = _compacted(journal, unverified)
    marks, left = list[Verified](), list[Unproven]()
    for key, group in groupby(unverified, key=lambda record: record.key):
        mappings, before, hold = list(group), state.verified.get(key), state.holds.get(key)
        if before and before.source_topic_id != mappings[-1].source_topic_id:
            before = None
        reason = f"held by {hold.by}: {hold.reason}" if hold else ""
        passed = 0
        if not hold:
            start = before.offset + 1 if before else None
            passed, reason = _passed(journal.target, journal.flow.source.alias, mappings, start, compacted[key.topic])
        if passed:
            marks.append(_mark(mappings[:passed], before, window, seen))
        if passed < len(mappings):
            rest = mappings[passed:]
            left.append(Unproven(key.topic, key.partition, rest[0].source_start, rest[-1].source_end - 1, reason))
    return marks, left


def _passed(
    target: Routes, alias: str, mappings: Sequence[MappingRecord], start: int | None, compacted: bool
) -> tuple[int, str]:
    """The number of mapping records from the first on that are on the target as they were copied; what is wrong with the next."""
    target.refresh_existing({mapping.remote_topic for mapping in mappings})
    for number, mapping in enumerate(mappings):
        try:
            error = account_error(alias, [mapping], compacted, start)
            if error is None and not is_on_target(target, mapping):
                span = f"{mapping.remote_topic}-{mapping.partition} offsets {mapping.target_start} to {mapping.target_end - 1}"
                return number, f"{span} are not as they were copied, and the source can't be asked"
        except AirmirrorError as unread:
            error = unread
        if error is not None:
            return number, str(error)
        start = mapping.source_end
    return len(mappings), ""


def _mark(passed: Sequence[MappingRecord], before: Verified | None, window: str, seen: int) -> Verified:
    last, copied = passed[-1], [mapping for mapping in passed if mapping.copied]
    end = copied[-1].target_end if copied else before.target_end if before else last.target_end
    return Verified(
        *last.key,
        source_topic_id=last.source_topic_id,
        offset=last.source_end - 1,
        target_end=end,
        window=window + ENGINE_ALONE,
        time_ms=int(time.time() * 1000),
        seen=seen,
    )


def _compacted(journal: Journal, records: Sequence[MappingRecord]) -> dict[str, bool]:
    """Return whether holes are allowed, by source topic: by the flow's word, or because its remote topic is compacted."""
    remote = {record.topic: record.remote_topic for record in records}
    journal.target.refresh_existing(remote.values())
    compacted = compacted_now(journal.target, set(remote.values()))
    return {topic: may_lack(journal.flow, topic) or name in compacted for topic, name in remote.items()}


def _write(granted: GrantedLease, records: Sequence[tuple[bytes, bytes | None]]) -> None:
    if records:
        granted.check()
        granted.appender.append(list(records))

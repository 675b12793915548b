"""The first records that MirrorMaker 2 copies after a hand-back: does it resume at the very next one? Only reads.

Of each partition the target is read after what the flow's newest mapping record maps, and followed in the source from there on,
record by record: key, value, headers and timestamp are equal (invariant D), nothing lies between, and nothing is there again.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience, read_records
from airmirror.errors import AirmirrorError, counted
from airmirror.flows.freezing import check_open, taken
from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.partitions import TopicPartition
from airmirror.tell import Tell, silent
from airmirror.windows.declared import compacted_topics
from airmirror.windows.handover import BACK
from airmirror.windows.history import ranges, runs
from airmirror.windows.mirror import Mirror
from airmirror.windows.mirrormaker import writers
from airmirror.windows.takeover import BothLogs, Record, missing, read_log
from airmirror.windows.trail import Trail, follow
from airmirror.wire.mappings import MappingRecord

FIRST = 1_000  # records of the target that are followed, of each partition
SAMPLE_SECONDS = 1.0


class HandbackVerdict(StrEnum):
    """What the first records of MirrorMaker 2 show in a partition."""

    RESUMED = "resumed"
    NOTHING_NEW = "nothing to copy"
    NOTHING_YET = "nothing yet"
    GAP = "gap"
    TWICE = "twice"
    STRANGE = "not the source's"
    UNKNOWN = "unknown"


WRONG = frozenset({HandbackVerdict.GAP, HandbackVerdict.TWICE, HandbackVerdict.STRANGE})


@dataclass(frozen=True)
class CopyDifference:
    """Records that are not copied once and in their place, by offsets (first, end) of the source and of the target.

    Of a gap the target's range is empty: it lies before the record at that offset. Of what is not the source's, the source's
    is (-1, -1). ``records`` -1: not counted, since it lies too far away.
    """

    what: HandbackVerdict
    source: tuple[int, int]
    target: tuple[int, int]
    records: int


@dataclass(frozen=True)
class FirstRecords:
    """One partition: what follows after the hand-back at source offset ``position``.

    ``first``: the source's and the target's offset of MirrorMaker 2's first record; ``records``: how many were followed.
    """

    key: TopicPartition
    remote_topic: str
    position: int
    verdict: HandbackVerdict
    first: tuple[int, int] | None = None
    records: int = 0
    differences: tuple[CopyDifference, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class HandbackCheck:
    """All partitions that were handed back. ``running``: who of MirrorMaker 2 is seen; ``warning``: why nobody can be seen."""

    flow: str
    running: tuple[str, ...]
    partitions: tuple[FirstRecords, ...]
    warning: str = ""

    @property
    def has_resumed(self) -> bool:
        """Return whether each partition with records to copy was seen to resume at the very next one."""
        return bool(self.partitions) and all(
            row.verdict in (HandbackVerdict.RESUMED, HandbackVerdict.NOTHING_NEW) for row in self.partitions
        )

    @property
    def is_wrong(self) -> bool:
        return any(row.verdict in WRONG for row in self.partitions)


def check_handback(opened: Opened, wait: float = 0.0, tell: Tell = silent) -> HandbackCheck:
    """Look at MirrorMaker 2's first records of each partition; for ``wait`` seconds where it has copied none yet.
    Not of what is frozen by its name, which applications write, or excluded since.

    Ends at once where one partition is wrong. Writes only the ledger. Raises FlowFrozen, or a cluster's error.
    """
    flow, begun = opened.flow, time.monotonic()
    catch_up_ledger(opened)
    check_open(opened)
    state = opened.ledger.state()
    known = [key for key in state.known if key in state.mappings]
    ours = taken(flow, opened.ledger.owners(), {topic for topic, _ in known})
    lasts = {TopicPartition(*key): state.mappings[key] for key in known if key[0] in ours}
    with Mirror.open(flow, opened.ledger, "handback") as mirror:
        mirror.refresh()
        gone = set(mirror.source.refresh_existing({last.topic for last in lasts.values()}))
        gone |= set(mirror.target.refresh_existing({last.remote_topic for last in lasts.values()}))
        compacted = compacted_topics(mirror, {last.topic for last in lasts.values()} - gone)
        found: dict[TopicPartition, FirstRecords] = {}
        while True:
            for key, last in lasts.items():
                if key not in found or found[key].verdict is HandbackVerdict.NOTHING_YET:
                    unfit = _unfit(mirror, last, last.topic in gone or last.remote_topic in gone)
                    found[key] = unfit or first_records(mirror, last, compacted=compacted[last.topic])
            checked = HandbackCheck(flow.name, (), tuple(found.values()))
            idle = sum(row.verdict is HandbackVerdict.NOTHING_YET for row in checked.partitions)
            if not idle or checked.is_wrong or time.monotonic() - begun >= wait:
                break
            tell(f"waiting for the first records of {counted(idle, 'partition')}")
            time.sleep(SAMPLE_SECONDS)  # the sampling interval: nothing tells what it has copied
        try:
            return replace(checked, running=tuple(writers(mirror.target, flow)))
        except AirmirrorError as error:
            return replace(checked, warning=f"whether MirrorMaker 2 runs is unknown: {error}")


def first_records(mirror: Mirror, last: MappingRecord, *, compacted: bool) -> FirstRecords:
    """Follow the target's first records after those of a partition's newest mapping record. Raises a cluster's error.

    Of a ``compacted`` topic either side may lack records that the other has.
    """
    key, remote = last.key, last.remote
    logs = BothLogs(mirror, key, remote)
    nothing = FirstRecords(key, last.remote_topic, last.source_end, HandbackVerdict.NOTHING_NEW)
    end = offsets_with_patience(mirror.target, [remote], LATEST, read_committed=True)[remote]
    begin = offsets_with_patience(mirror.target, [remote], EARLIEST)[remote]
    if not begin <= last.target_end <= end:
        reason = f"the remote log has offsets {begin} to {end}, and {last.target_end} was reached: the target has lost records"
        return replace(nothing, verdict=HandbackVerdict.UNKNOWN, reason=reason)
    theirs = logs.theirs(last.target_end, end, FIRST)[:FIRST]
    earliest = offsets_with_patience(mirror.source, [key], EARLIEST)[key]
    if earliest > last.source_end:
        reason = f"the source has deleted offsets {last.source_end} to {earliest - 1} since"
        return replace(nothing, verdict=HandbackVerdict.UNKNOWN, records=len(theirs), reason=reason)
    if not theirs:
        is_idle = not _ours(logs, last.source_end, 1, read_committed=mirror.flow.reads_committed)
        return replace(nothing, verdict=HandbackVerdict.NOTHING_NEW if is_idle else HandbackVerdict.NOTHING_YET)
    first, differences = _compared(logs, last, theirs, earliest)
    found = replace(nothing, first=first, records=len(theirs), differences=tuple(differences))
    what = differences[0].what if differences else HandbackVerdict.RESUMED
    if compacted and what in (HandbackVerdict.GAP, HandbackVerdict.STRANGE):
        return replace(
            found, verdict=HandbackVerdict.UNKNOWN, reason="the topic is compacted: a cleaner may have been there"
        )
    return replace(found, verdict=what)


def _unfit(mirror: Mirror, last: MappingRecord, is_gone: bool) -> FirstRecords | None:
    """The row of a partition of which nothing can be told; None: its records can be followed."""
    reason = ""
    if mirror.flow.is_aggregate:
        reason = "other flows write to its remote topic too"
    elif is_gone:
        reason = "its topic is not there any more"
    elif mirror.source.topic_ids[last.topic] != last.source_topic_id:
        reason = "the source topic was created again"
    elif mirror.target.topic_ids[last.remote_topic] != last.target_topic_id:
        reason = "the remote topic was created again"
    if not reason:
        return None
    return FirstRecords(last.key, last.remote_topic, last.source_end, HandbackVerdict.UNKNOWN, reason=reason)


def _compared(
    logs: BothLogs, last: MappingRecord, theirs: Sequence[Record], earliest: int
) -> tuple[tuple[int, int] | None, list[CopyDifference]]:
    """The place of the first record on both sides, and what is wrong with all of them, in the target's order."""
    position, marks = last.source_end, [it.digest for it in theirs]
    best: tuple[int, tuple[int, int] | None, list[CopyDifference]] | None = None
    for start in dict.fromkeys((position, max(earliest, position - BACK))):
        for committed in (True, False):  # as MirrorMaker 2 may read it: committed records, or everything, its default
            most = position - start + 2 * len(theirs)
            view = _ours(logs, start, most, read_committed=committed)
            trail = follow([it.digest for it in view], marks, bisect_left(view, position, key=lambda it: it.offset))
            found = sorted(_differences(trail, view, theirs), key=lambda it: it.target)
            wrong = sum(it.records for it in found if it.what is not HandbackVerdict.TWICE)
            if best is None or wrong < best[0]:
                place = {at: view[number].offset for number, at in (*trail.copies, *trail.again)}
                best = wrong, (place[0], theirs[0].offset) if 0 in place else None, found
            if not wrong:
                return best[1:]
    assert best is not None
    if best[1] is None and logs.keeps_times and (at := _far(logs, theirs[0])) >= 0:
        first = theirs[0].offset
        is_before = at < position
        source, target = ((at, at + 1), (first, first + 1)) if is_before else ((position, at), (first, first))
        return (at, first), [
            CopyDifference(HandbackVerdict.TWICE if is_before else HandbackVerdict.GAP, source, target, -1)
        ]
    return best[1:]


def _ours(logs: BothLogs, start: int, most: int, *, read_committed: bool) -> list[Record]:
    """The source's records from ``start`` on: about the first ``most`` of those that are committed, or of all."""
    source, key, times = logs.mirror.source, logs.key, logs.keeps_times
    end = offsets_with_patience(source, [key], LATEST, read_committed=read_committed)[key]
    return read_log(source, key, start, end, read_committed=read_committed, most=most, times=times).committed[:most]


def _differences(trail: Trail, view: Sequence[Record], theirs: Sequence[Record]) -> Iterator[CopyDifference]:
    for run in runs((view[number].offset, theirs[at].offset) for number, at in trail.again):
        source, target = (run.source_first, run.source_end), (run.target_first, run.target_end)
        yield CopyDifference(HandbackVerdict.TWICE, source, target, run.count)
    for first, end in ranges(theirs[at].offset for at in trail.strange):
        yield CopyDifference(HandbackVerdict.STRANGE, (-1, -1), (first, end), end - first)
    copies = dict(trail.copies)
    for skipped in trail.skipped:
        if lost := missing(replace(trail, skipped=(skipped,)), view):
            at = theirs[copies[skipped[1]]].offset
            yield CopyDifference(HandbackVerdict.GAP, (lost[0].offset, lost[-1].offset + 1), (at, at), len(lost))


def _far(logs: BothLogs, first: Record) -> int:
    """The source offset of the target's ``first`` record, found by its timestamp; -1: it is not there."""
    source, target, at = logs.mirror.source, logs.mirror.target, first.offset
    found = next(read_records(target, logs.remote, at, at + 1, read_committed=True), None)
    if found is None or found.timestamp < 0:
        return -1
    start = offsets_with_patience(source, [logs.key], found.timestamp)[logs.key]
    if start < 0:
        return -1
    view = _ours(logs, start, FIRST, read_committed=False)
    return next((it.offset for it in view if it.digest == first.digest), -1)

"""The step *history* of a take-over: what MirrorMaker 2 had copied before gets mappings, so that positions there are exact.

Comparing takes no lease: windows continue meanwhile. Each topic is committed under a lease of its own, and only mapping records
are written, below what is verified already: each record that they map was just compared with the source (invariants D and F).

A cleaner takes a record only where a later one has its key, and tombstones in time; the newest record of a key stays. So a record
of the source that the target lacks, without a hole in its place or without a later one of its key, was not copied: it is a gap.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.topic_configs import topic_configs
from airmirror.errors import AirmirrorError, command, counted
from airmirror.evidence.compaction import superseded
from airmirror.evidence.logs import Log
from airmirror.flows.leases import when_free
from airmirror.flows.prepare import Opened, catch_up_ledger, caught_up
from airmirror.flows.reset import check_of_the_flow
from airmirror.ledger import FlowLedger
from airmirror.partitions import TopicPartition
from airmirror.runbooks.runbook import SILENT, Progress
from airmirror.runbooks.takeover.order import TakeoverOrder
from airmirror.tell import Tell, silent
from airmirror.windows import driver
from airmirror.windows.declared import compacted_topics
from airmirror.windows.fence import fence_around, leased, new_window
from airmirror.windows.history import Gap, History, compare_history, ranges
from airmirror.windows.mirror import Mirror
from airmirror.wire.mappings import MappingRecord
from airmirror.wire.records import Array


class NoHistoryInAggregate(AirmirrorError):
    """Several sources write to one remote topic: equal records do not tell whose they are."""

    flow: str
    says = (
        "flow {0.flow!r}: other flows write to its remote topics too, so a record there is not known to be a copy of this "
        "source's; positions before the take-over stay estimated: {airmirror:groups}"
    )


@dataclass(frozen=True)
class ComparedCopies:
    """One partition: what was found, or why nothing was looked at.

    ``exact_from``: the source offset from which on positions are exact, before and with what was found; ``None``: none are.
    """

    key: TopicPartition
    remote_topic: str
    exact_from: tuple[int | None, int | None]
    history: History | None
    reason: str = ""

    @property
    def why_not(self) -> str:
        """Why nothing of it becomes exact; "": it does."""
        return self.reason or ("" if self.history is None else self.history.refused)

    @property
    def needs_somebody(self) -> bool:
        return bool(self.why_not or (self.history and self.history.gaps))


def history_step(opened: Opened, order: TakeoverOrder, progress: Progress = SILENT) -> list[ComparedCopies]:
    """Write the mappings of what MirrorMaker 2 had copied. Raises what ``make_exact`` does."""
    rows = make_exact(opened, order.topics, write=True, wait=order.wait, tell=progress.phase)
    for row in rows:
        before, now = row.exact_from
        left = f", and is left as it is: {row.why_not}" if row.why_not else ""
        progress.line(f"{row.key}: positions were exact from {before} on, and are from {now} on{left}")
        for each in told(row):
            progress.line(each)
    return rows


def make_exact(
    opened: Opened, topics: Collection[str] = (), *, write: bool, wait: float, tell: Tell = silent
) -> list[ComparedCopies]:
    """Compare MirrorMaker 2's copies of the flow's partitions (or those of ``topics``), one topic after the other.

    ``write``: commit their mappings; another window's lease is awaited for ``wait`` seconds. Raises NoHistoryInAggregate,
    NotOfTheFlow, FlowBusy, FlowFrozen, or a cluster's error.
    """
    if opened.flow.is_aggregate:
        raise NoHistoryInAggregate(opened.flow.name)
    opened = caught_up(opened)
    with Mirror.open(opened.flow, opened.ledger, "history") as mirror:
        mirror.refresh()
        firsts = {key: each for key, each in _firsts(opened.ledger).items() if not topics or key.topic in topics}
        check_of_the_flow(mirror, set(topics) - {key.topic for key in firsts})
        missing = mirror.source.refresh_existing({key.topic for key in firsts})
        missing |= mirror.target.refresh_existing({first.remote_topic for first in firsts.values()})
        compacted = compacted_topics(mirror, {key.topic for key in firsts} - missing.keys())
        found: list[ComparedCopies] = []
        for topic in sorted({key.topic for key in firsts}):
            rows = []
            for key in sorted(key for key in firsts if key.topic == topic):
                tell(f"comparing {key}")
                first = firsts[key]
                gone = next((name for name in (topic, first.remote_topic) if name in missing), "")
                reason = f"{gone} is not there" if gone else _unfit(mirror, first)
                history = None if reason else compared(mirror, first, compacted=compacted[topic])
                before = first.source_start
                now = before if history is None else history.start
                rows.append(ComparedCopies(key, first.remote_topic, (before, now), history, reason))
            if write:
                _commit_patiently(mirror, rows, wait, tell)
            found += rows
    if write:
        catch_up_ledger(opened)
    return found


def compared(mirror: Mirror, before: MappingRecord, *, compacted: bool) -> History:
    """Compare what the target holds before the first mapping record of a partition. Raises a cluster's error.

    Of a ``compacted`` topic both logs are read once more for the keys of what lacks, and the walk begins again after a gap.
    """
    found = compare_history(mirror, before, compacted=compacted)
    if not compacted:
        return found
    remote = TopicPartition(before.remote_topic, before.partition)
    skipped = np.array(found.skipped, np.int64)
    strange = np.concatenate([np.empty(0, np.int64), *(np.arange(first, end) for first, end in found.strange)])
    here, there = _log(mirror.source, found.key), _log(mirror.target, remote)
    policy = topic_configs(mirror.target, [remote.topic], ["cleanup.policy"])[remote.topic]["cleanup.policy"]
    lost = skipped[~_taken(here, there, skipped)] if "compact" in policy else skipped
    foreign = strange[~_taken(there, here, strange)]
    if len(lost):
        found = compare_history(mirror, before, compacted=True, after=int(lost[-1]))
    gaps = (*found.gaps, *(Gap(first, end - 1, end - first) for first, end in ranges(lost.tolist())))
    cleaned = len(skipped) - len(lost) + len(strange) - len(foreign)
    return replace(
        found,
        gaps=tuple(sorted(gaps, key=lambda gap: gap.first)),
        strange=tuple(ranges(foreign.tolist())),
        cleaned=cleaned,
    )


def _log(routes: Routes, partition: TopicPartition) -> Log:
    end = offsets_with_patience(routes, [partition], LATEST, read_committed=True)[partition]
    start = offsets_with_patience(routes, [partition], EARLIEST)[partition]
    return Log(routes, partition, start, end, log_start=start, since=start, until=end)


def _taken(log: Log, other: Log, offsets: Array) -> Array:
    """Return which of these records of a log, by offset, the other log's cleaner may have taken, as a mask."""
    if not len(offsets):
        return np.empty(0, bool)
    taken = superseded(log, offsets, other)
    if taken.all():
        return taken
    there = [records.offsets for records in log.records(int(offsets[0]), int(offsets[-1]) + 1)]
    return taken | ~np.isin(offsets, np.concatenate([offsets[:0], *there]))  # a cleaner works meanwhile


def told(row: ComparedCopies) -> Iterator[str]:
    """Yield each run of records that is no single copy of the source's, in words."""
    found, place = row.history, f"{row.remote_topic}-{row.key.partition}"
    if found is None:
        return
    for run in found.again:
        again = f"again the source's {run.source_first} to {run.source_end - 1}"
        yield f"copied twice: {place}, offsets {run.target_first} to {run.target_end - 1}: {again}"
    for first, end in found.strange:
        yield f"not the source's: {place}, offsets {first} to {end - 1}"
    if found.cleaned:
        count = counted(found.cleaned, "record")
        yield f"taken by a cleaner: {row.key}: {count} that one side has, superseded by a later one of their key"
    for gap in found.gaps:
        yield f"not copied: {row.key}, {gap.count or 'some'} records between source offsets {gap.first} and {gap.last}"


def _firsts(ledger: FlowLedger) -> dict[TopicPartition, MappingRecord]:
    """The first mapping record of each partition, of the topic that is copied now."""
    last = ledger.last_mappings()
    records = ledger.first_mappings([(*key, record.source_topic_id) for key, record in last.items()])
    return {record.key: record for record in records}


def _unfit(mirror: Mirror, first: MappingRecord) -> str:
    """Return why nothing before the first mapping record can be compared, or counted as verified; empty: it can."""
    if mirror.source.topic_ids[first.topic] != first.source_topic_id:
        return "the source topic was created again"
    if mirror.target.topic_ids[first.remote_topic] != first.target_topic_id:
        return "the remote topic was created again"
    mark = mirror.index.verified().get((first.topic, first.partition))
    if mark is None or mark.source_topic_id != first.source_topic_id or mark.offset + 1 < first.source_start:
        return f"nothing of it is verified yet: {command('run-window', flow=mirror.flow.name)}"
    return ""


def _commit_patiently(mirror: Mirror, rows: Sequence[ComparedCopies], wait: float, tell: Tell) -> None:
    chosen = [row.history for row in rows if row.history is not None and row.history.accounts]
    if not chosen:
        return
    tell(f"committing the mappings of {chosen[0].key.topic}")
    when_free(mirror.flow, lambda: _commit(mirror, chosen), tell, wait)


def _commit(mirror: Mirror, chosen: Sequence[History]) -> None:
    """Write the mapping records of what was compared, in one transaction under a lease; of partitions that have not changed."""
    with leased(mirror, new_window("history"), slots=1) as granted:
        fenced = fence_around(granted, 1)
        mirror.catch_up()
        now = _firsts(mirror.index)
        records = [
            (record.encode_key(), record.encode_value())
            for history in chosen
            if now.get(history.key) == history.before and not _unfit(mirror, history.before)
            for record in _records(history, granted.lease.window)
        ]
        if records:
            driver.commit(granted, {TopicPartition(mirror.topics.mappings, 0): records}, fenced.numbers[0])


def _records(history: History, window: str) -> Iterator[MappingRecord]:
    first = history.before
    now = int(time.time() * 1000)
    place = (history.key, first.remote_topic, (first.source_topic_id, first.target_topic_id))
    yield from (account.record(*place, window=window, time_ms=now) for account in history.accounts)

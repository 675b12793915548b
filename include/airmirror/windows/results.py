"""The results of a window for reports: one row a partition, the positions of all partitions, and the whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.ledger import FlowLedger
from airmirror.ledger.metrics import Standing
from airmirror.partitions import CopyFacts, TopicPartition
from airmirror.slot.contract import Outcome, SlotResult
from airmirror.slot.errors import of_flow
from airmirror.windows.errors import PartitionHeld
from airmirror.windows.findings import GateRow
from airmirror.windows.following import Followed
from airmirror.windows.judging import Verdict
from airmirror.windows.plan import Planned
from airmirror.wire.mappings import MappingRecord


@dataclass
class PartitionCommits:
    """One partition's commits in a window. Ends are exclusive; target offsets of -1: no record was copied."""

    source_start: int
    source_end: int = -1
    target_start: int = -1
    target_end: int = -1
    copied: int = 0
    control: int = 0
    aborted: int = 0
    holes: int = 0
    lost: int = 0
    bytes: int = 0
    read_back: bool = True

    def add(self, record: MappingRecord) -> None:
        """Add the next commit."""
        self.source_end = record.source_end
        if record.copied:
            self.target_start = record.target_start if self.target_start < 0 else self.target_start
            self.target_end = record.target_end
        self.copied += record.copied
        self.control += record.control
        self.aborted += record.aborted
        self.holes += record.holes
        self.lost += record.lost
        self.bytes += record.size
        self.read_back = self.read_back and record.was_read_back


def committed(records: Iterable[MappingRecord]) -> dict[TopicPartition, PartitionCommits]:
    """Sum up the mapping records of a window, which come in the order of each partition's source offsets, one by one: a window
    that follows the log for hours has millions."""
    found: dict[TopicPartition, PartitionCommits] = {}
    for record in records:
        found.setdefault(record.key, PartitionCommits(record.source_start)).add(record)
    return found


@dataclass(frozen=True)
class Row(CopyFacts):
    """One partition's part of a window, as it is shown. Ends are exclusive; ``lag`` is in records, to the high watermark.

    ``verified``: all that is committed has passed the gate; without ``read_back`` (``window.verify=acks``) no one has
    looked at what the target holds.
    """

    source_start: int
    source_end: int
    target_start: int
    target_end: int
    copied: int
    control: int
    aborted: int
    holes: int
    lost: int
    bytes: int
    lag: int
    verified: bool
    outcome: Outcome
    error: AirmirrorError | None
    read_back: bool = True

    @property
    def failed(self) -> bool:
        """Return whether something is wrong with it; an operator's hold is not."""
        return self.error is not None and not (isinstance(self.error, PartitionHeld) and self.error.is_decided)


@dataclass(frozen=True)
class WindowResult:
    """The result of a window. ``rows``: the partitions that it touched or that are in error; ``standings``: all of the flow.

    ``limited``: the most seconds that one of its slots waited for throttle.bytes.per.second; ``throttled``: the same for the
    brokers' quotas.
    ``seen_ms``: the source's ends in ``standings`` are not older than this, in epoch milliseconds; -1 where there are none.
    """

    flow: str
    window: str
    rows: tuple[Row, ...]
    partitions: int
    seconds: float
    phases: Mapping[str, float]
    is_cut: bool
    standings: tuple[Standing, ...] = ()
    seen_ms: int = -1
    followed: Followed | None = None
    limited: float = 0.0
    throttled: float = 0.0

    @property
    def has_waited(self) -> bool:
        """Return whether its slots have followed the log while nothing came."""
        return not self.rows and "copy" in self.phases

    @property
    def copied(self) -> int:
        return sum(row.copied for row in self.rows)

    @property
    def bytes(self) -> int:
        return sum(row.bytes for row in self.rows)

    @property
    def is_verified(self) -> bool:
        return all(row.verified and not row.failed for row in self.rows)

    @property
    def is_read_back(self) -> bool:
        return all(row.read_back for row in self.rows)


def rows_of(flow: Flow, window: str, index: FlowLedger, planned: Sequence[Planned]) -> tuple[Row, ...]:
    """Return the commits of a window and their outcomes, from the index; the lag is the one that is left now."""
    done = committed(index.of_window(window))
    return tuple(window_rows(flow, done, index, [item for item in planned if item.key in done]))


def window_rows(
    flow: Flow,
    done: Mapping[TopicPartition, PartitionCommits],
    index: FlowLedger,
    planned: Sequence[Planned],
    *,
    results: Sequence[SlotResult] = (),
    verdicts: Sequence[Verdict] = (),
    ends: Mapping[TopicPartition, int] | None = None,
) -> Iterator[Row]:
    """One row a partition that the window touched or that is in error.

    ``done``: what the window has committed; ``ends``: the high watermarks after the copy.
    """
    result_of = {result.key: result for result in results}
    verdict_of = {verdict.key: verdict for verdict in verdicts}
    state = index.state()
    for item in planned:
        key = item.key
        own, result, verdict, hold = done.get(key), result_of.get(key), verdict_of.get(key), state.holds.get(key)
        error = item.error or (result.error if result else None) or (verdict.error if verdict else None)
        if error is None and hold is not None:
            error = PartitionHeld(flow.source.alias, *key, hold.offset, hold.reason, hold.by, hold.time_ms)
        if own is None and (result is None or result.outcome is Outcome.DONE) and verdict is None and error is None:
            continue
        position = state.positions.get(key, item.start)
        passed, own = state.verified.get(key), own or PartitionCommits(position, position)
        yield Row(
            *key,
            remote_topic=item.remote_topic,
            **vars(own),
            lag=max(0, (ends or {}).get(key, item.high_watermark) - position),
            verified=position == item.start == 0 or (passed is not None and passed.offset + 1 >= position),
            outcome=result.outcome if result else Outcome.FAILED if error else Outcome.DONE,
            error=of_flow(error, flow),
        )


def with_verdicts(result: WindowResult, findings: Sequence[GateRow], verdicts: Sequence[Verdict]) -> WindowResult:
    """The window as a gate has judged it afterwards, with a row for what earlier windows had left to it."""
    judged = {verdict.key: verdict for verdict in verdicts}
    rows = [_judged(row, judged.pop(row.key, None)) for row in result.rows]
    rows += [_left(finding, judged[finding.key]) for finding in findings if finding.key in judged]
    return replace(result, rows=tuple(rows))


def _judged(row: Row, verdict: Verdict | None) -> Row:
    if verdict is None:
        return row
    error = verdict.error if row.error is None or isinstance(row.error, PartitionHeld) else row.error
    return replace(row, verified=verdict.error is None, error=error)


def _left(finding: GateRow, verdict: Verdict) -> Row:
    passed, end = verdict.error is None, finding.source_end
    return Row(
        *finding.key,
        finding.remote_topic,
        **vars(PartitionCommits(end, end)),
        lag=finding.lag_records,
        verified=passed,
        outcome=Outcome.DONE if passed else Outcome.FAILED,
        error=verdict.error,
    )

"""A flow resumes after records that lie on both sides already, and were not copied by it: they returned, or were rescued.

Mapping records of the reverse flow say what it has copied; read backwards they are this flow's own account of
those records, which are not copied back to where they came from (invariant G). The next gate compares them record by record
(invariant F). Every other record of the range counts as lost: it lies on the source and was not replicated (invariants C and E).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from airmirror.clusters.protocol.log import read_batches
from airmirror.partitions import TopicPartition
from airmirror.slot.account import Account
from airmirror.slot.internal_records import KeyValue
from airmirror.windows import driver
from airmirror.windows.coverage import runs_within
from airmirror.windows.cursor import decoded
from airmirror.windows.declared import compacted_topics
from airmirror.windows.diverged import look_at_epochs
from airmirror.windows.fence import GrantedLease
from airmirror.windows.mirror import Mirror
from airmirror.windows.plan import Planned
from airmirror.windows.resets import Facts, Remaining
from airmirror.windows.starts import records_of
from airmirror.windows.takeover import TakenOver
from airmirror.wire.mappings import MappedRange, MappingRecord
from airmirror.wire.records import Array

RETURN = "return"  # the choice among a flow's resets
MOST_RUNS = 50_000  # ranges that one transaction commits, of as many partitions as they are: less than a megabyte
OF_ACCOUNT = 20  # ranges, which together are about as large as the other fields of a mapping record


@dataclass(frozen=True)
class Continuation:
    """One partition, the part of its account that remains, and what is added to it: up to where the flow resumes.

    ``alone``: the offsets of records that the source holds there now and no flow has brought to the target, in order. What its
    retention has deleted by now is not among them, and counts as lost like them.
    """

    facts: Facts
    kept: Remaining
    taken: TakenOver
    alone: Array = field(default_factory=lambda: np.empty(0, np.int64), compare=False)

    @property
    def key(self) -> TopicPartition:
        return self.facts.key

    @property
    def start(self) -> int:
        """The source offset from which on the account is added."""
        return self.taken.accounts[0].start

    @property
    def end(self) -> int:
        """The source offset to resume at."""
        return self.taken.end

    @property
    def target_end(self) -> int:
        """The end of the remote log, as it was found: what follows there is the flow's own."""
        return self.taken.accounts[-1].target_end

    @property
    def lost(self) -> int:
        """The number of offsets that are counted as lost: of records of ``alone``, and of what was deleted."""
        return sum(account.lost for account in self.taken.accounts)


def continue_after(
    mirror: Mirror,
    facts: Facts,
    kept: Remaining,
    *,
    start: int,
    end: int,
    target_end: int,
    reverse: Iterable[MappingRecord] = (),
) -> Continuation:
    """The account of a partition's source offsets ``[start, end)``, after what is ``kept``; only the source is read.

    ``reverse``: mapping records of the reverse flow, in order; ``target_end``: where the remote log ends.
    Accounts have the leader epochs of both logs, by which later windows see that one was cut. Raises what reading a log does.
    """
    remote = {facts.key: (facts.remote, target_end)} if target_end > 0 else {}
    epochs = look_at_epochs(mirror, {facts.key: start}, remote)[facts.key]
    content = _content(mirror, facts.key, start, end)
    before = kept.last.target_end if kept.last else 0
    accounts = epochs.noted(_accounts(content, start, end, before, target_end, reverse))
    item = Planned(*facts.key, facts.remote_topic, start, end, facts.high_watermark, last=facts.last)
    return Continuation(facts, kept, TakenOver(item, accounts), content.outside(accounts))


def commit(
    mirror: Mirror,
    granted: GrantedLease,
    number: int,
    continuations: Sequence[Continuation],
    *,
    by: str,
    reason: str,
    more: Sequence[KeyValue] = (),
) -> None:
    """Commit continuations under the lease, in transactions of about MOST_RUNS ranges each, with ``more`` records of the mapping
    topic (A and B). Each leaves accounts without a gap: whoever is killed in between, and looks again, finds what is left of
    them.

    Raises SlotFenced where the lease is another's by now.
    """
    log = TopicPartition(mirror.topics.mappings, 0)
    for some in transactions(continuations):
        records = records_of(mirror, granted, [each.taken for each in some])
        before = [entry for each in some for entry in _of_kept(each, granted.offset)]
        decided = [
            driver.decision(
                granted,
                each.key,
                RETURN,
                each.facts.problem,
                by=by,
                reason=reason,
                start=each.end,
                lost_first=each.start,
            )
            for each in some
            if each.facts.last is not None
        ]
        records[log] = [*more, *before, *records.get(log, ()), *decided]
        driver.commit(granted, records, number)


def transactions(continuations: Sequence[Continuation]) -> Iterator[list[Continuation]]:
    """Yield continuations, or parts of them in order, for one transaction each; at least one.

    The last account of a continuation, which tells where the logs end, goes with the one before it.
    """
    some, runs, last = list[Continuation](), 0, continuations[-1] if continuations else None
    for each in continuations:
        accounts, first = each.taken.accounts, 0
        for number, account in enumerate(accounts):
            runs += OF_ACCOUNT + len(account.ranges)
            if runs >= MOST_RUNS and (number + 2 < len(accounts) or (number + 1 == len(accounts) and each is not last)):
                yield [*some, _part(each, first, number + 1)]
                some, runs, first = [], 0, number + 1
        if first < len(accounts):
            some.append(_part(each, first, len(accounts)))
    yield some


def _part(each: Continuation, first: int, end: int) -> Continuation:
    """The accounts of a continuation from one on, and before another; what changes of the earlier ones goes with the first."""
    kept = each.kept if first == 0 else Remaining(each.kept.records)
    return replace(each, kept=kept, taken=replace(each.taken, accounts=each.taken.accounts[first:end]))


def _of_kept(each: Continuation, seen: int) -> Iterator[KeyValue]:
    """Yield what changes of a partition's earlier account; ``seen``: where the lease lies, under which all before is known."""
    kept, verified = each.kept, each.facts.verified
    yield from ((record.encode_key(), None) for record in kept.forgotten)
    if kept.shortened is not None:
        yield kept.shortened.encode_key(), kept.shortened.encode_value()
    if verified is None or kept.is_whole:
        return
    if kept.last is None:
        yield verified.encode_key(), None
        return
    ends = min(verified.offset, kept.last.source_end - 1), min(verified.target_end, kept.last.target_end)
    verified = replace(verified, offset=ends[0], target_end=ends[1], seen=seen)
    yield verified.encode_key(), verified.encode_value()


@dataclass(frozen=True)
class _Content:
    """A range of a log: the offsets of its records, and ranges of control records and of aborted ones."""

    offsets: Array
    control: Sequence[tuple[int, int]]
    aborted: Sequence[tuple[int, int]]
    compacted: bool

    def count(self, account: Account) -> None:
        """Account for every offset that is not copied."""
        start, end = account.start, account.end
        there = self._records(start, end)
        mapped = sum(self._records(run.source_first, run.source_end) for run in account.ranges)
        account.control = _within(self.control, start, end)
        account.aborted = _within(self.aborted, start, end)
        account.lost = there - mapped
        rest = end - start - account.copied - account.control - account.aborted - account.lost
        if self.compacted:
            account.holes = rest
        else:
            account.lost += rest  # what retention has deleted before it was replicated

    def outside(self, accounts: Iterable[Account]) -> Array:
        """The offsets of records that no range of the accounts maps."""
        alone = np.ones(len(self.offsets), bool)
        for account in accounts:
            for run in account.ranges:
                first, end = np.searchsorted(self.offsets, (run.source_first, run.source_end))
                alone[first:end] = False
        return self.offsets[alone]

    def _records(self, start: int, end: int) -> int:
        return int(np.searchsorted(self.offsets, end) - np.searchsorted(self.offsets, start))


def _content(mirror: Mirror, key: TopicPartition, start: int, end: int) -> _Content:
    control, aborted, offsets = list[tuple[int, int]](), list[tuple[int, int]](), list[Array]()
    committed = mirror.flow.reads_committed
    for buffer, batches in read_batches(mirror.source, key, start, end, read_committed=committed):
        data = []
        for batch, is_aborted in batches:
            if batch.is_control or is_aborted:
                (control if batch.is_control else aborted).append((batch.base_offset, batch.next_offset))
            elif batch.count:
                data.append(batch)
        parts = decoded(routes=mirror.source, partition=key, buffer=buffer, batches=data, start=start, end=end)
        offsets += [part.offsets for part in parts]
    compacted = compacted_topics(mirror, [key.topic])[key.topic] if start < end else False
    return _Content(np.concatenate(offsets) if offsets else np.empty(0, np.int64), control, aborted, compacted)


def _accounts(
    content: _Content, start: int, end: int, before: int, target_end: int, reverse: Iterable[MappingRecord]
) -> Iterator[Account]:
    """One for each record of the reverse flow, so that none has too many ranges, and the last up to ``end``."""
    for record in reverse:
        backwards = (MappedRange(run.target_first, run.source_first, run.count) for run in record.ranges)
        runs = runs_within(backwards, start, end)
        if not runs:
            continue
        account = Account(start, before)
        for run in runs:
            account.written([(run.source_first, run.count)], run.target_first)
        account.end = start = runs[-1].source_end
        before = account.target_end
        content.count(account)
        yield account
    last = Account(start, target_end, end=end)
    content.count(last)
    yield last


def _within(ranges: Iterable[tuple[int, int]], start: int, end: int) -> int:
    return sum(max(0, min(last, end) - max(first, start)) for first, last in ranges)

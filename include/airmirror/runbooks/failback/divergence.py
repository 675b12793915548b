"""The divergence of partitions after a failover: records of the source that were never replicated, and others' on the target
since.

The account of what was replicated is exact (invariants C and G): up to the end of the newest mapping record all of the source's
log was replicated, or is accounted for. What its log has after that, or where it is not the log any more that was copied, was
never replicated. Rescued records are none of these, nor are those that have returned there by the reverse flow. On the target,
what lies after the flow's last record is of others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes
from airmirror.evidence.logs import Log
from airmirror.ledger.state import State
from airmirror.partitions import CopyFacts, TopicPartition
from airmirror.windows import resetting
from airmirror.windows.mirror import Mirror, caught_up_reverse, reverse_ledger
from airmirror.windows.resets import Choice, Facts, borne_out
from airmirror.wire.moves import Rescue, rescues_of
from airmirror.wire.records import Array, Records

Span = tuple[int, int]


@dataclass(frozen=True)
class Written:
    """Records of a log: their number, their bytes, their earliest and latest timestamps (epoch milliseconds, -1: no record).

    ``runs``: the first and the last offset of each run of consecutive offsets; together they are exactly these records.
    """

    records: int = 0
    size: int = 0
    earliest_ms: int = -1
    latest_ms: int = -1
    runs: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Divergence(CopyFacts):
    """One partition. Offsets are of the next record.

    ``replicated_end``: up to here the source's records were replicated; ``kept_end``: of these the source still has the log that
    was copied up to here, -1: it has no such partition. ``start``, ``end``: of what is on the source now and was not replicated,
    or was lost by the target, as far as it can be read and was not rescued; ``never``: the records there. ``open_from``: from
    here on it can't be read yet, because a transaction is open, -1: all can. ``rescued``: records that were. ``since``: those of
    others on the target after the flow's last one. ``unverified``: offsets that were replicated and that no gate has let pass.
    ``problem``: what happened to a log. ``waits``: records that the flow copies by itself when it is unfrozen: it has copied
    nothing of the partition yet, and nobody has written to its remote partition; they are not among ``never``.
    """

    source_topic_id: str
    replicated_end: int
    kept_end: int
    unverified: int
    problem: str
    start: int = 0
    end: int = 0
    never: Written = Written()
    rescued: int = 0
    open_from: int = -1
    since: Written = Written()
    waits: Written = Written()

    @property
    def lost(self) -> int:
        """Offsets that were replicated and that the source does not have any more; what its retention deletes does not count."""
        return max(0, self.replicated_end - max(self.kept_end, 0))

    @property
    def is_equal(self) -> bool:
        """Return whether both sides are as a failover left them, as far as this partition is concerned."""
        return not (self.never.records or self.since.records or self.lost or self.problem) and self.open_from < 0


def divergences(mirror: Mirror, topics: Mapping[str, str]) -> list[Divergence]:
    """Return what became of each partition of ``topics`` (of the source, with their remote topics), by topic and partition.

    Both clusters are read, and nothing is written. The ledger has caught up. Raises what reading a log does.
    """
    caught_up_reverse(mirror.source, mirror.flow, mirror.index)
    state, rescues = mirror.index.state(), mirror.index.of_kind(Rescue)
    missing = mirror.source.refresh_existing(topics)
    facts = resetting.look(mirror, {name: topics[name] for name in topics if name not in missing}, Choice.ACCEPT_LOSS)
    committed = mirror.flow.reads_committed
    readable = offsets_with_patience(mirror.source, [each.key for each in facts], LATEST, read_committed=committed)
    unverified = Counter[TopicPartition]()
    for record in mirror.index.unverified():
        unverified[record.key] += record.source_end - record.source_start
    found = [_of(mirror, each, readable[each.key], rescues, unverified[each.key]) for each in facts]
    seen = {each.key for each in facts}
    gone = [key for key in map(TopicPartition._make, state.known) if key.topic in topics and key not in seen]
    found += [_gone(mirror, state, key, rescues, unverified[key]) for key in gone]
    return sorted(found, key=lambda each: (each.topic, each.partition))


def written(parts: Iterable[Records], without: Collection[Span] = ()) -> Written:
    """The account of records in the order of their offsets; ``without``: those from an offset on and before another."""
    count, size, runs, others = 0, 0, list[Span](), Offsets.of(without)
    times: list[int] = []
    for part in parts:
        part = part.where(~others.has(part.offsets))
        if not len(part):
            continue
        count, size = count + len(part), size + int((part.ends - part.starts).sum())
        times += [int(part.timestamps.min()), int(part.timestamps.max())]
        cuts = np.flatnonzero(np.diff(part.offsets) != 1)
        firsts, lasts = part.offsets[np.append(0, cuts + 1)].tolist(), part.offsets[np.append(cuts, -1)].tolist()
        if runs and runs[-1][1] + 1 == firsts[0]:
            firsts[0] = runs.pop()[0]
        runs += zip(firsts, lasts, strict=True)
    return Written(count, size, min(times, default=-1), max(times, default=-1), tuple(runs))


@dataclass(frozen=True)
class Offsets:
    """Offsets as spans that do not overlap, in order: ``firsts``, and ``ends`` that do not belong to them."""

    firsts: Array
    ends: Array

    @classmethod
    def of(cls, spans: Collection[Span]) -> Offsets:
        both = np.array(sorted(spans), np.int64).reshape(-1, 2)
        return cls(both[:, 0], both[:, 1])

    def has(self, offsets: Array) -> Array:
        """For each of ``offsets`` whether it is one of these."""
        if not len(self.firsts):
            return np.zeros(len(offsets), bool)
        at = np.searchsorted(self.firsts, offsets, "right") - 1
        return (at >= 0) & (offsets < self.ends[at])


def _of(mirror: Mirror, facts: Facts, readable: int, rescues: Sequence[Rescue], unverified: int) -> Divergence:
    topic_id, key = str(facts.source_topic_id), facts.key
    account, replicated = borne_out(facts), 0 if facts.last is None else facts.last.source_end
    kept = 0 if facts.source_recreated else replicated if facts.source_cut is None else facts.source_cut
    begin = facts.resumes_at
    if not account.is_whole:  # what either side has lost of it was not replicated, or not any more
        begin = account.last.source_end if account.last else facts.earliest
    its = list(rescues_of(rescues, *key, topic_id))
    start = max(begin, facts.earliest, *(each.source_end for each in its))
    log = Log(mirror.source, key, start, readable, is_committed=mirror.flow.reads_committed)
    alone = written(log.records(), _returned(mirror, facts))
    begun = 0 if facts.last is None or facts.target_recreated else min(facts.last.target_end, facts.held_to)
    remote = facts.remote
    has_remote = facts.target_topic_id != resetting.NO_TOPIC and mirror.target.has(remote)
    since = _since(mirror.target, remote, begun) if has_remote else Written()
    rescued = sum(each.records for each in its)
    is_new = facts.last is None and facts.recorded < 0 and not (rescued or since.records)
    return Divergence(
        *key,
        remote_topic=facts.remote_topic,
        source_topic_id=topic_id,
        replicated_end=replicated,
        kept_end=kept,
        start=start,
        end=max(start, readable),
        never=Written() if is_new else alone,
        rescued=rescued,
        open_from=readable if readable < facts.high_watermark else -1,
        since=since,
        unverified=unverified,
        problem=replace(facts, foreign=False, tail=None).problem,
        waits=alone if is_new else Written(),
    )


def _returned(mirror: Mirror, facts: Facts) -> list[Span]:
    """The offsets of the source at which what has returned since lies, by the reverse flow, in order.

    Its ledger has caught up.
    """
    reverse = reverse_ledger(mirror.flow, mirror.index)
    last = reverse.last_mappings().get((facts.remote_topic, facts.partition))
    if last is None or last.remote_topic != facts.topic or last.target_topic_id != facts.source_topic_id:
        return []
    kept = borne_out(facts)
    since = kept.last.target_end if kept.last else 0
    its = reverse.mappings(last.topic, last.partition, last.source_topic_id, start=since)
    return [(run.target_first, run.target_end) for each in its for run in each.ranges if run.source_end > since]


def _gone(mirror: Mirror, state: State, key: TopicPartition, rescues: Sequence[Rescue], unverified: int) -> Divergence:
    """A partition that the source does not have any more: all that was replicated of it is on the target alone."""
    last = state.mappings.get(key)
    remote = TopicPartition(last.remote_topic if last else "", key.partition)
    topic_id = str(last.source_topic_id) if last else ""
    return Divergence(
        *key,
        remote_topic=remote.topic,
        source_topic_id=topic_id,
        replicated_end=last.source_end if last else 0,
        kept_end=-1,
        unverified=unverified,
        problem="the source has no such partition any more",
        rescued=sum(each.records for each in rescues_of(rescues, *key, topic_id)),
        since=_since(mirror.target, remote, last.target_end) if last else Written(),
    )


def _since(target: Routes, remote: TopicPartition, start: int) -> Written:
    """Return what others have written to a partition of the target from an offset on."""
    if target.refresh_existing([remote.topic]) or not target.has(remote):
        return Written()
    end = offsets_with_patience(target, [remote], LATEST, read_committed=True)[remote]
    return written(Log(target, remote, start, end).records())

"""A window that follows the log: judged meanwhile, its tasks done, and ended early, under its own lease; and how late it was."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate

from airmirror.errors import AirmirrorError
from airmirror.ledger.state import State
from airmirror.partitions import TopicPartition
from airmirror.slot.errors import SlotFenced
from airmirror.threads import BackgroundThread
from airmirror.windows.ending import Ending, Topics
from airmirror.windows.fence import GrantedLease, HeldLease
from airmirror.windows.judging import Gate, verify_committed
from airmirror.windows.mirror import Journal, Mirror
from airmirror.windows.plan import Planned
from airmirror.windows.planning import chosen
from airmirror.windows.standing import Ends, Seen, Select, nothing_else, seen_of, source_ends
from airmirror.wire.mappings import MappingRecord

log = logging.getLogger(__name__)

LEAST_PAUSE = 0.05  # seconds, where judging and tasks take longer than their intervals
LOOK_SECONDS = 5.0  # between two looks for what ends it
AGAIN_SECONDS = 60.0  # after so long it judges again what could not be read


@dataclass(frozen=True)
class Follow:
    """The wish that a window stays for ``window.follow.ms``.

    ``gate`` judges meanwhile; None: the engine's own checks alone. ``ready`` makes it so, before there is anything to judge.
    ``tasks`` are done every ``seconds``, and after each judgement: they are given the window's lease, under which the ledger
    has caught up, and whether anything was verified. Of errors they raise SlotFenced only. ``seen`` hears as often as it
    judges where the partitions stand, with those of topics that are new: ``select`` names the flow's, ``topics`` what becomes of
    them.
    """

    gate: Gate | None
    tasks: Callable[[HeldLease, bool], None] = lambda held, verified: None
    seconds: float = math.inf
    seen: Callable[[Seen], None] = lambda seen: None
    select: Select = nothing_else
    ready: Callable[[], None] = lambda: None
    topics: Topics = field(default_factory=Topics)


class FollowLoop(BackgroundThread):
    """Judges what a window commits every ``verify.interval.ms``, does its tasks, and ends it where it is to end early: a context
    manager, with a thread of its own.

    The last judgement is not its own. What is held is left to that: a partition is held once, and not read again and again. One
    that could not be read is judged again after a minute.
    """

    def __init__(
        self,
        granted: GrantedLease,
        follow: Follow,
        planned: Sequence[Planned],
        only: Callable[[TopicPartition], bool] = lambda partition: True,
    ) -> None:
        super().__init__(f"gate {granted.lease.window}")
        self._granted, self._follow, self._planned = granted, follow, planned
        self._window = granted.lease.window
        self._left: dict[TopicPartition, float] = {}  # until when, by time.monotonic
        self._ending = Ending(follow.topics, chosen(planned, only, None), granted.journal.index.holds())

    def _run(self) -> None:
        with closing(self._ending):
            self._follow_on()

    def _follow_on(self) -> None:
        flow, index = self._granted.journal.flow, self._granted.journal.index
        seconds = flow.window.verify_interval_ms / 1000
        pause = 0.0
        while not self._ended.wait(pause):
            pause = min(seconds, LOOK_SECONDS)  # after an error
            try:
                self._follow.ready()
                with Mirror.open(flow, index, "verify") as mirror:
                    mirror.refresh()
                    self._loop(mirror, replace(self._granted, journal=mirror), seconds)
            except SlotFenced as fenced:  # as its slots will find
                log.warning("%s", fenced)
                return
            except Exception as error:  # whatever it is: the last judgement comes in any case
                known = isinstance(error, AirmirrorError)
                log.warning("What %s has committed was not judged yet: %s", self._window, error, exc_info=not known)
                self._let_others()

    def _loop(self, mirror: Mirror, granted: GrantedLease, seconds: float) -> None:
        """Judge at most every ``seconds``, counted from beginning to beginning, and soon where nothing had come for a while;
        do the tasks; tell where the partitions stand; end the window where something wants that."""
        look = min(seconds, LOOK_SECONDS)
        turn = min(look, self._follow.seconds)
        judge_at = seen_at = time.monotonic()
        while not self._ended.is_set():
            begun = time.monotonic()
            ends = source_ends(mirror.source, self._planned, self._follow.select) if begun >= seen_at else None
            state = mirror.current_state()
            if ends is not None:
                self._end(granted, state, ends)
            passed = self._judge(mirror, granted, state) if begun >= judge_at else None
            if passed is not None:
                judge_at = max(judge_at + seconds, begun)
            elif begun >= judge_at:
                judge_at = begun + turn
            self._follow.tasks(HeldLease(mirror, granted.check), bool(passed))
            if ends is not None:
                self._follow.seen(seen_of(mirror.index.state().positions, self._planned, ends))
                seen_at = begun + look
            elif passed:
                seen_at = begun
            due = min(judge_at, seen_at, begun + turn)
            self._ended.wait(max(LEAST_PAUSE, due - time.monotonic()))

    def _let_others(self) -> None:
        """End the window where others want its lease and the source can't be looked at: a failover needs the target only."""
        flow, index = self._granted.journal.flow, self._granted.journal.index
        with suppress(Exception), Journal.open(flow, index, "lease") as journal:
            journal.target.refresh([journal.topics.mappings])
            granted = replace(self._granted, journal=journal)
            if not granted.is_ending and granted.wanted_by():
                granted.check()
                granted.renewal.end()

    def _end(self, granted: GrantedLease, state: State, ends: Ends) -> None:
        """Tell the slots to end where they are to."""
        if granted.is_ending or not (why := self._ending.why(granted, state, ends)):
            return
        log.info("Window %s ends before its time, and the next one continues: %s.", self._window, why)
        granted.check()
        granted.renewal.end()

    def _judge(self, mirror: Mirror, granted: GrantedLease, state: State) -> bool | None:
        """Judge what is new and not left to a later judgement; whether anything has passed. None: there is nothing."""
        self._left |= dict.fromkeys((TopicPartition(*key) for key in state.holds), math.inf)
        begun = time.monotonic()
        left = {key for key, until in self._left.items() if begun < until}
        if {record.key for record in mirror.index.unverified()} <= left:
            return None
        granted.check()  # a driver that slept for longer than its lease judges no more
        verification = verify_committed(mirror, granted, self._follow.gate, trusted={self._window}, left=left)
        for verdict in verification.verdicts:
            if verdict.error is not None:
                later = time.monotonic() + AGAIN_SECONDS
                self._left[verdict.key] = later if verdict.error.transient else math.inf
                log.warning("%s", verdict.error)
        return len(verification.errors) < len(verification.verdicts)


@dataclass(frozen=True)
class Followed:
    """The records that a window copied after its planned ends, and their seconds from a record's timestamp to its commit.

    Of the records of one transaction the oldest counts for all. The clocks are the producers' and the executors'.
    """

    records: int
    median: float
    p99: float

    def __str__(self) -> str:
        return (
            f"Followed: {self.records:,} records, from their timestamps to their commits {self.median:.2f} s in the median, "
            f"{self.p99:.2f} s at p99."
        )


class Latencies:
    """How late commits were, counted while they are read one by one, by milliseconds of three digits, of which there are few.
    ``planned``: where each partition's plan ended, because what was there before says nothing."""

    def __init__(self, planned: Mapping[TopicPartition, int]) -> None:
        self._planned = planned
        self._records = Counter[int]()

    def noting(self, records: Iterable[MappingRecord]) -> Iterator[MappingRecord]:
        """The same records, counted on the way."""
        for record in records:
            is_later = record.source_start >= self._planned.get(record.key, 0)
            if record.copied and record.min_timestamp >= 0 and is_later:
                late_ms = max(0, record.time_ms - record.min_timestamp)
                self._records[int(float(f"{late_ms:.3g}"))] += record.copied
            yield record

    def followed(self) -> Followed | None:
        """The lateness of what was counted; None: nothing came after the plan."""
        found, total = sorted(self._records.items()), self._records.total()
        if not total:
            return None
        return Followed(total, _quantile(found, total / 2), _quantile(found, total * 0.99))


def _quantile(found: Sequence[tuple[int, int]], records: float) -> float:
    """The seconds within which that number of ``records`` came; ``found``: milliseconds and records."""
    sums = accumulate(count for _, count in found)
    return next(late_ms / 1000 for (late_ms, _), count in zip(found, sums, strict=True) if count >= records)

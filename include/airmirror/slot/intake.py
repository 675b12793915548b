"""One partition's way through a slot: every batch fetched is copied whole, sent the slow way, or left out and counted.

Keeps invariant E: each source offset goes into the account exactly once, as copied, control, aborted or hole.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left

from airmirror.slot.account import Account
from airmirror.slot.contract import SlotPartition
from airmirror.slot.delivery import CopyContext, Delivery
from airmirror.slot.refusals import Refusals
from airmirror.slot.slow import SlowPath
from airmirror.wire.aborted import AbortedFilter
from airmirror.wire.batch import (
    LOG_APPEND_TIME,
    MESSAGE_SET,
    Batch,
    BatchTooLarge,
    CorruptBatch,
    UnknownMessageFormat,
)
from airmirror.wire.batches import parse
from airmirror.wire.requests import Fetched

log = logging.getLogger(__name__)


class Intake:
    """The state of one partition: its position in the source, and the account of the open transaction."""

    def __init__(
        self, context: CopyContext, partition: SlotPartition, end: int, refusals: Refusals | None = None
    ) -> None:
        self.partition = partition
        self.position = partition.start
        self.planned = self._last = end
        self._first = partition.start  # nothing before it is copied, though a batch may hold it
        self.leader_epoch = partition.leader_epoch
        self._checksum = partition.source_checksum  # of the batch with the offset before the position, -1 unknown
        self.looks_back = False  # whether the next fetch begins with that batch, to see that the log is still the same
        self.look_back()
        self.context = context
        self.refusals = refusals or Refusals()
        self.delivery = Delivery(context, partition, end, self.refusals)
        self.end_at(end)
        self.withheld = ""  # how its leader answered last, where it gave nothing although there is more
        self._lost = sorted(self.refusals.lost)
        self._read_committed = context.slot.flow.reads_committed
        self._aborted = AbortedFilter(self.refusals.left_out)
        self._slow = SlowPath(self.delivery)

    @property
    def account(self) -> Account:
        """The account of the open transaction."""
        return self.delivery.account

    @property
    def end(self) -> int:
        """The source offset up to which it copies: the planned one, but for a slot that follows the log, or had a refusal."""
        return self.delivery.end

    @property
    def is_done(self) -> bool:
        return self.position >= self.end

    @property
    def fetched_from(self) -> int:
        """The source offset that the next fetch is to begin at."""
        return self.position - 1 if self.looks_back else self.position

    def look_back(self) -> None:
        """Look at the batch before the position again: the log may be another one by now, a disk's that was restored."""
        self.looks_back = self._checksum >= 0 and not (self.partition.compacted or self.partition.purged)

    @property
    def awaits_commit(self) -> bool:
        """Return whether it continues only after a commit, since the target refused what comes next."""
        return self.is_done and self.end < self._last

    def end_at(self, offset: int) -> None:
        """Copy up to another offset, which is not below the position; first of all up to where the target has refused nothing."""
        self._last, proven = offset, self.refusals.proven
        self.delivery.end = proven if self.account.start < proven < offset else offset

    def committed(self) -> None:
        """Begin the account of the next transaction, which may begin within a batch."""
        self.delivery.committed(self.position, self.leader_epoch)
        self._first = self.position
        self.end_at(self._last)

    def take(self, buffer: memoryview, fetched: Fetched) -> None:
        """Send on what a fetch brought. Raises a PartitionError; the transaction is of no use after that."""
        position, looked_back = self.position, self.looks_back
        self.account.read_ms = int(time.time() * 1000)
        try:
            self._take(buffer, fetched)
        except BatchTooLarge as error:
            raise self.delivery.over_limit(error.base_offset) from error
        except (CorruptBatch, UnknownMessageFormat) as error:
            raise self.delivery.corrupt(self.position, str(error)) from error
        if fetched.start < fetched.end and self.position == position and not self.is_done and not looked_back:
            raise self.delivery.corrupt(position, "its leader answers with other offsets")
        self.account.end, self.account.checksum = self.position, self._checksum

    def _take(self, buffer: memoryview, fetched: Fetched) -> None:
        if self._read_committed:
            self._aborted.begin(fetched.aborted, buffer, fetched.start, fetched.end, self.position)
            if self._aborted.left_out:
                raise self.delivery.left_out(self._aborted.left_out)
            if self._aborted.lapsed:
                raise self.delivery.lapsed(self._aborted.lapsed)
        self.context.merging.look(buffer, fetched.start, fetched.end)
        start: int | None = self._after_known(buffer, fetched) if self.looks_back else fetched.start
        while start is not None and not self.is_done:
            start = self._take_from(buffer, start, fetched.end)
        self._slow.flush(buffer)

    def _after_known(self, buffer: memoryview, fetched: Fetched) -> int:
        """The end, in the buffer, of the batch before the position, where the answer begins with it. Raises SourceDiverged where
        it is not the one that was copied."""
        self.looks_back = fetched.start == fetched.end
        before = next(parse(buffer, fetched.start, fetched.end, self.delivery.largest), None)
        if before is None or before.base_offset >= self.position:
            return fetched.start
        if before.checksum != self._checksum:
            raise self.delivery.diverged(self.position, before)
        if before.next_offset > self.position:
            return fetched.start
        self._aborted.is_aborted(buffer, before)
        return before.position + before.size

    def _take_from(self, buffer: memoryview, start: int, end: int) -> int | None:
        """Take the batches one by one, up to the end of the first run of small ones: its place, or None where all are taken."""
        for batch in parse(buffer, start, end, self.delivery.largest):
            if self.account.is_full and batch.next_offset > self.position:
                return None  # the rest is fetched again after the commit
            after = self._take_run(buffer, batch, end)
            if after is not None:
                return after
            aborted = self._read_committed and self._aborted.is_aborted(buffer, batch)
            if batch.next_offset <= self.position:
                continue
            if batch.base_offset >= self.end:
                if self.position < self.end:
                    self._hole(self.end)
                return None
            if batch.base_offset > self.position:
                self._hole(batch.base_offset)
            count = min(batch.next_offset, self.end) - self.position
            if batch.is_control:
                self.account.control += count
            elif aborted:
                self.account.aborted += count
            elif batch.count == 0:
                self._hole(self.position + count)
                count = 0
            else:
                self._data(buffer, batch)
            self.position += count
            self._checksum = -1 if batch.attributes & MESSAGE_SET else batch.checksum
            self.leader_epoch = self.account.leader_epoch = batch.leader_epoch
            if self.is_done:
                return None  # what comes may be damaged: it is no concern of what comes before it
        return None

    def _take_run(self, buffer: memoryview, first: Batch, end: int) -> int | None:
        """Take the run of small batches that begins with ``first``: its end in the buffer, or None where there is none."""
        if not self.context.merging.wanted(first) or self._aborted.is_long:
            return None
        from airmirror.wire.small import take_run  # loads the compiled loops

        run = take_run(
            buffer,
            first.position,
            end,
            offset=self.position,
            last=self.end,
            leader_epoch=self.leader_epoch,
            may_lack=self.partition.compacted,
            aborted=self._aborted if self._read_committed else None,
            below=self.context.merging.below,
            most=self.context.merging.run,
        )
        if run.stop == first.position:
            return None
        position, self.position = self.position, run.offset
        self._checksum = run.last_checksum(buffer, first.position)
        self.account.control += run.control
        self.account.aborted += run.aborted
        self.account.holes += run.holes
        self.leader_epoch = self.account.leader_epoch = run.leader_epoch
        if len(run) > (0 if self.context.merging.compression else 1) and not run.is_compressed:
            self._slow.merge(buffer, run, position)
        else:
            for batch in run.batches():
                self._slow.add(buffer, batch, self._can_go_whole(batch), position)
        return run.stop

    def nothing_more(self, end: int) -> None:
        """The rest up to ``end`` are holes (invariant C)."""
        self._hole(end)
        self._aborted.jump()
        self.account.end, self.account.checksum = self.position, self._checksum

    def purged(self, begin: int) -> None:
        """The log begins at ``begin`` by now; what was before it was handled, and counts as holes (``streams.applications``)."""
        self.nothing_more(min(begin, self.end))
        self._first = self.position

    def _hole(self, end: int) -> None:
        if not self.partition.compacted:
            self.delivery.unexpected_hole(self.position, end - 1)
        self.account.holes += end - self.position
        self.position, self._checksum = end, -1
        # What ends in a hole may end past its batch's epoch: the batch that began the next one is gone.
        self.leader_epoch = self.account.leader_epoch = -1

    def _data(self, buffer: memoryview, batch: Batch) -> None:
        whole = self._can_go_whole(batch)
        if whole and not self.context.merging.wanted(batch):
            self._slow.flush(buffer)
            self.delivery.send_whole(buffer, batch)
            return
        self._slow.add(buffer, batch, whole, self.position)

    def _can_go_whole(self, batch: Batch) -> bool:
        return (
            batch.is_dense
            and not batch.attributes & (LOG_APPEND_TIME | MESSAGE_SET)
            and batch.base_offset >= self._first
            and batch.next_offset <= self.end
            and batch.size <= self.partition.max_message_bytes
            and not self.refusals.rewritten
            and not self._has_lost(batch)
        )

    def _has_lost(self, batch: Batch) -> bool:
        number = bisect_left(self._lost, batch.base_offset)
        return number < len(self._lost) and self._lost[number] < batch.next_offset

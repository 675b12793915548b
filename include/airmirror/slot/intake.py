"""One partition's way through a slot: every batch fetched is copied whole, sent the slow way, or left out and counted.

Keeps invariant E: each source offset goes into the account exactly once, as copied, control, aborted or hole.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airmirror.clusters.protocol.log import AbortedFilter
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.transactions import TransactionalId
from airmirror.slot.account import Account, payload_digest
from airmirror.slot.adjacent import foreign
from airmirror.slot.contract import Slot, SlotPartition
from airmirror.slot.dead_letters import DeadLetterTopic
from airmirror.slot.errors import SourceCorrupt, TargetTruncated, TargetUnavailable, UnexpectedHole
from airmirror.slot.outbox import Outbox, Outgoing
from airmirror.slot.readback import ReadBack
from airmirror.slot.refusals import BatchOverLimit, Refusals, is_tolerant
from airmirror.slot.sent import Sent
from airmirror.slot.slow import SlowPath
from airmirror.wire.batch import (
    CODEC_MASK,
    LOG_APPEND_TIME,
    MESSAGE_SET,
    Batch,
    BatchTooLarge,
    CorruptBatch,
    UnknownMessageFormat,
)
from airmirror.wire.batches import HEADER_SIZE, parse, restamp
from airmirror.wire.merging import Merging
from airmirror.wire.requests import Fetched

if TYPE_CHECKING:
    pass

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Way:
    """What all partitions of a slot share on their way to the target. ``read_back`` is None with window.verify=acks."""

    slot: Slot
    target: Routes
    transaction: TransactionalId
    outbox: Outbox
    read_back: ReadBack | None
    merging: Merging
    dead_letters: DeadLetterTopic | None = None


class Intake:
    """The state of one partition: its position in the source, and the account of the open transaction."""

    def __init__(self, way: Way, partition: SlotPartition, end: int, refusals: Refusals | None = None) -> None:
        self.partition = partition
        self.position = partition.start
        self.end = end
        self.leader_epoch = partition.leader_epoch
        self.account = Account(partition.start, partition.target_end)
        self.way = way
        self.refusals = refusals or Refusals()
        self._lost = sorted(self.refusals.lost)
        self.tolerant = is_tolerant(way.slot.flow)
        self._read_committed = way.slot.flow.isolation_level == "read_committed"
        self._aborted = AbortedFilter()
        self._known_end = partition.known_end
        self.decodes = False  # whether records had to be decoded
        self.withheld = ""  # how its leader answered last, where it gave nothing although there is more
        self.largest = way.slot.flow.window.largest_batch_bytes
        self._slow = SlowPath(self)

    @property
    def is_done(self) -> bool:
        return self.position >= self.end

    def committed(self) -> None:
        """Begin the account of the next transaction."""
        if self.account.segments:
            self._known_end += 1  # the marker that has committed them
        self.account = Account(self.position, self.account.target_end, leader_epoch=self.leader_epoch)

    def take(self, buffer: memoryview, fetched: Fetched) -> None:
        """Send on what a fetch brought. Raises a PartitionError; the transaction is of no use after that."""
        position = self.position
        self.account.read_ms = int(time.time() * 1000)
        try:
            self._take(buffer, fetched)
        except BatchTooLarge as error:
            raise self.over_limit(error.base_offset) from error
        except (CorruptBatch, UnknownMessageFormat) as error:
            raise self.corrupt(self.position, str(error)) from error
        if fetched.start < fetched.end and self.position == position and not self.is_done:
            raise self.corrupt(position, "its leader answers with other offsets")
        self.account.end = self.position

    def _take(self, buffer: memoryview, fetched: Fetched) -> None:
        self._aborted.begin(fetched.aborted)
        for batch in parse(buffer, fetched.start, fetched.end, self.largest):
            aborted = self._read_committed and self._aborted.is_aborted(buffer, batch)
            if batch.next_offset <= self.position:
                continue
            if self.account.is_full:
                break  # the rest is fetched again after the commit
            if batch.base_offset >= self.end:
                if self.position < self.end:
                    self._hole(self.end)
                break
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
            self.leader_epoch = batch.leader_epoch
            self.account.leader_epoch = batch.leader_epoch
        self._slow.flush(buffer)

    def nothing_more(self) -> None:
        """The rest up to the planned end are holes (invariant C)."""
        self._hole(self.end)
        self.account.end = self.position

    def _hole(self, end: int) -> None:
        if not self.partition.compacted:
            self.unexpected_hole(self.position, end - 1)
        self.account.holes += end - self.position
        self.position = end

    def corrupt(self, offset: int, reason: str) -> SourceCorrupt:
        partition = self.partition
        return SourceCorrupt(self.way.slot.flow.source.alias, partition.topic, partition.partition, offset, reason)

    def over_limit(self, offset: int) -> BatchOverLimit:
        flow, partition = self.way.slot.flow, self.partition
        return BatchOverLimit(
            flow.source.alias, partition.topic, partition.partition, offset, self.largest, flow.target.alias
        )

    def unexpected_hole(self, first: int, last: int) -> None:
        raise UnexpectedHole(
            self.way.slot.flow.source.alias, self.partition.topic, self.partition.partition, first, last
        )

    def _data(self, buffer: memoryview, batch: Batch) -> None:
        small = self.way.merging.wanted(batch)
        whole = self._can_go_whole(batch)
        if whole and not small:
            self._slow.flush(buffer)
            self.send_whole(buffer, batch)
            return
        self._slow.add(buffer, batch, whole, self.position)

    def _can_go_whole(self, batch: Batch) -> bool:
        return (
            batch.is_dense
            and not batch.attributes & (LOG_APPEND_TIME | MESSAGE_SET)
            and batch.base_offset >= self.partition.start
            and batch.next_offset <= self.end
            and batch.size <= self.partition.max_message_bytes
            and not self.refusals.rewritten
            and not self._has_lost(batch)
        )

    def _has_lost(self, batch: Batch) -> bool:
        number = bisect_left(self._lost, batch.base_offset)
        return number < len(self._lost) and self._lost[number] < batch.next_offset

    def send_whole(self, buffer: memoryview, batch: Batch) -> None:
        way = self.way
        producer = way.transaction
        sequence = way.outbox.sequence(self.partition.target, batch.count)
        payload = buffer[batch.position + HEADER_SIZE : batch.position + batch.size]
        digest = payload_digest(payload)
        restamp(buffer, batch, producer.producer_id, producer.epoch, sequence)
        self.put(
            Sent(
                self, self.account, [(batch.base_offset, batch.count)], batch.count,
                batch.attributes & (CODEC_MASK | LOG_APPEND_TIME), batch.base_timestamp, batch.max_timestamp,
                payload, digest,
            ),
            [buffer[batch.position : batch.position + batch.size]],
        )  # fmt: skip

    def put(self, sent: Sent, buffers: list[memoryview | bytearray]) -> None:
        size = sum(map(len, buffers))
        self.account.bytes += size
        self.account.sent(sent.runs)
        stamped = sent.attributes & LOG_APPEND_TIME  # all its records have the time of the last
        self.account.times(sent.max_timestamp if stamped else sent.base_timestamp, sent.max_timestamp)
        self.way.outbox.put(
            Outgoing(self.partition.target, buffers, size, sent.count, sent.written, sent.refused, sent.late)
        )

    def unavailable(self, reason: str) -> TargetUnavailable:
        """The error of the target's partition where it takes or gives no records."""
        source, target, partition = self.way.slot.flow.source.alias, self.way.slot.flow.target.alias, self.partition
        return TargetUnavailable(source, partition.topic, partition.partition, target, partition.remote_topic, reason)

    def check_adjacent(self, account: Account, base: int, count: int) -> None:
        """Nothing of others may lie between what this flow wrote last and ``base`` (invariants B and G), unless declared."""
        way, partition = self.way, self.partition
        last = account.target_end
        alias, target = way.slot.flow.source.alias, way.slot.flow.target.alias
        if base < last:
            raise TargetTruncated(
                alias, partition.topic, partition.partition, target, partition.remote_topic, last, base
            )
        if base > self._known_end and not way.slot.flow.is_aggregate:
            error = foreign(alias, way.target, partition, max(last, 0), base)
            if error is not None:
                raise error
        self._known_end = base + count

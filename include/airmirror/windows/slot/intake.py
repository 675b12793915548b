"""One partition's way through a slot: every batch fetched is copied whole, sent the slow way, or left out and counted.

Keeps invariant E: each source offset goes into the account exactly once, as copied, control, aborted or hole.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airmirror.clusters.error_codes import error_name
from airmirror.clusters.log import AbortedFilter
from airmirror.clusters.routes import TOPIC_DENIED, Routes
from airmirror.clusters.transactions import TransactionalId
from airmirror.windows.errors import (
    AccessLost,
    ReadBackDiffers,
    SourceCorrupt,
    TargetTruncated,
    TargetUnavailable,
    UnexpectedHole,
)
from airmirror.windows.slot.account import Account, payload_digest
from airmirror.windows.slot.adjacent import foreign
from airmirror.windows.slot.dead_letters import DeadLetterTopic
from airmirror.windows.slot.outbox import Outbox, Outgoing
from airmirror.windows.slot.readback import Expected, ReadBack
from airmirror.windows.slot.refusals import RecordTooLarge, Refusals, WriteRefused, is_tolerant
from airmirror.windows.slots import Slot, SlotPartition
from airmirror.wire.batches import (
    CODEC_MASK,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    MESSAGE_SET,
    Batch,
    CorruptBatch,
    UnknownMessageFormat,
    build,
    parse,
    restamp,
)
from airmirror.wire.merging import Merging
from airmirror.wire.requests import Fetched, Produced

if TYPE_CHECKING:
    from airmirror.wire.records import Records
    from airmirror.wire.transcode import DenseBatch

log = logging.getLogger(__name__)

SLOW_RUN_BYTES = 1 << 20


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
        self._way = way
        self._refusals = refusals or Refusals()
        self._lost = sorted(self._refusals.lost)
        self._tolerant = is_tolerant(way.slot.flow)
        self._read_committed = way.slot.flow.isolation_level == "read_committed"
        self._aborted = AbortedFilter()
        self._known_end = partition.known_end
        self.decodes = False  # whether records had to be decoded
        self.withheld = ""  # how its leader answered last, where it gave nothing although there is more
        self._run: list[Batch] = []
        self._run_first = 0
        self._run_bytes = 0

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
        except (CorruptBatch, UnknownMessageFormat) as error:
            raise self._corrupt(self.position, str(error)) from error
        if fetched.start < fetched.end and self.position == position and not self.is_done:
            raise self._corrupt(position, "its leader answers with other offsets")
        self.account.end = self.position

    def _take(self, buffer: memoryview, fetched: Fetched) -> None:
        self._aborted.begin(fetched.aborted)
        for batch in parse(buffer, fetched.start, fetched.end):
            aborted = self._read_committed and self._aborted.is_aborted(buffer, batch)
            if batch.next_offset <= self.position:
                continue
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
        self._flush(buffer)

    def nothing_more(self) -> None:
        """The rest up to the planned end are holes (invariant C)."""
        self._hole(self.end)
        self.account.end = self.position

    def _hole(self, end: int) -> None:
        if not self.partition.compacted:
            self._unexpected_hole(self.position, end - 1)
        self.account.holes += end - self.position
        self.position = end

    def _corrupt(self, offset: int, reason: str) -> SourceCorrupt:
        partition = self.partition
        return SourceCorrupt(self._way.slot.flow.source.alias, partition.topic, partition.partition, offset, reason)

    def _unexpected_hole(self, first: int, last: int) -> None:
        raise UnexpectedHole(
            self._way.slot.flow.source.alias, self.partition.topic, self.partition.partition, first, last
        )

    def _data(self, buffer: memoryview, batch: Batch) -> None:
        small = self._way.merging.wanted(batch)
        if self._can_go_whole(batch) and not small:
            self._flush(buffer)
            self._send_whole(buffer, batch)
            return
        if self._run and (self._run[0].codec != batch.codec or self._run_bytes > SLOW_RUN_BYTES):
            self._flush(buffer)
        if not self._run:
            self._run_first, self._run_bytes = self.position, 0
        self._run.append(batch)
        self._run_bytes += batch.size

    def _can_go_whole(self, batch: Batch) -> bool:
        return (
            batch.is_dense
            and not batch.attributes & (LOG_APPEND_TIME | MESSAGE_SET)
            and batch.base_offset >= self.partition.start
            and batch.next_offset <= self.end
            and batch.size <= self.partition.max_message_bytes
            and not self._refusals.rewritten
            and not self._has_lost(batch)
        )

    def _has_lost(self, batch: Batch) -> bool:
        number = bisect_left(self._lost, batch.base_offset)
        return number < len(self._lost) and self._lost[number] < batch.next_offset

    def _flush(self, buffer: memoryview) -> None:
        """Send the batches that wait for the slow path; a single one that can go whole goes whole."""
        run, self._run = self._run, []
        if not run:
            return
        if len(run) == 1 and self._can_go_whole(run[0]):
            self._send_whole(buffer, run[0])
            return
        from airmirror.wire.codecs import UnknownCodec
        from airmirror.wire.records import index  # loads compiled loops: only where records must be decoded
        from airmirror.wire.transcode import dense_batches

        self.decodes = True
        offsets = sum(min(batch.next_offset, self.end) - max(batch.base_offset, self._run_first) for batch in run)
        codec = run[0].codec
        try:
            records = index(buffer, run, self._run_first, self.end)
        except (CorruptBatch, UnknownCodec) as error:
            raise self._corrupt(self._run_first, str(error)) from error
        if len(records) < offsets and not self.partition.compacted:
            self._unexpected_hole(self._run_first, run[-1].next_offset - 1)
        self.account.holes += offsets - len(records)
        if self._lost:
            records, lost = records.split(self._lost)
            for number, offset in enumerate(lost.offsets.tolist()):
                self._lose(lost.slice(number, number + 1), codec, self._refusals.lost[offset])
        for dense in dense_batches(records, codec, self.partition.max_message_bytes):
            self._send_dense(dense)

    def _send_whole(self, buffer: memoryview, batch: Batch) -> None:
        way = self._way
        producer = way.transaction
        sequence = way.outbox.sequence(self.partition.target, batch.count)
        payload = buffer[batch.position + HEADER_SIZE : batch.position + batch.size]
        digest = payload_digest(payload)
        restamp(buffer, batch, producer.producer_id, producer.epoch, sequence)
        self._put(
            _Sent(
                self, self.account, [(batch.base_offset, batch.count)], batch.count,
                batch.attributes & (CODEC_MASK | LOG_APPEND_TIME), batch.base_timestamp, batch.max_timestamp,
                payload, digest,
            ),
            [buffer[batch.position : batch.position + batch.size]],
        )  # fmt: skip

    def _send_dense(self, dense: DenseBatch) -> None:
        way = self._way
        producer = way.transaction
        count = len(dense.offsets)
        if len(dense.payload) + HEADER_SIZE > self.partition.max_message_bytes:
            too_large = RecordTooLarge(
                way.slot.flow.source.alias, self.partition.topic, self.partition.partition, int(dense.offsets[0]),
                len(dense.payload) + HEADER_SIZE, self.partition.max_message_bytes,
                way.slot.flow.target.alias, self.partition.remote_topic,
            )  # fmt: skip
            if not self._tolerant:
                raise too_large
            self._lose(dense.records, dense.codec, str(too_large))
            return
        batch = build(
            dense.payload, count=count, base_timestamp=dense.base_timestamp, max_timestamp=dense.max_timestamp,
            codec=dense.codec, producer_id=producer.producer_id, producer_epoch=producer.epoch,
            sequence=way.outbox.sequence(self.partition.target, count), transactional=True,
        )  # fmt: skip
        if way.read_back is not None:
            self._compare_with_fetched(batch, dense)
        payload = memoryview(batch)[HEADER_SIZE:]
        self._put(
            _Sent(
                self, self.account, dense.runs(), count, dense.codec, dense.base_timestamp, dense.max_timestamp,
                payload, payload_digest(payload),
            ),
            [batch],
        )  # fmt: skip

    def _compare_with_fetched(self, batch: bytearray, dense: DenseBatch) -> None:
        """The records of a batch that was written anew are those that were fetched (invariant D)."""
        from airmirror.wire.records import first_difference, index

        found = index(memoryview(batch), list(parse(memoryview(batch), 0, len(batch))))
        number = first_difference(dense.records, found)
        if number >= 0 or len(found) != len(dense.records):
            flow, partition, offsets = self._way.slot.flow, self.partition, dense.offsets
            raise ReadBackDiffers(
                flow.source.alias, partition.topic, partition.partition, flow.target.alias, partition.remote_topic,
                int(offsets[0]), int(offsets[-1]), -1, "the slow path did not write what was fetched",
            )  # fmt: skip

    def _lose(self, record: Records, codec: int, reason: str) -> None:
        """Declare a record lost, and write it to the dead letter topic where it fits (errors.tolerance=all)."""
        self.account.lost += 1
        way, offset = self._way, int(record.offsets[0])
        log.warning("%s offset %d is declared lost: %s", self.partition.source, offset, reason)
        if way.dead_letters is not None and offset not in self._refusals.unfit:
            way.dead_letters.write(self.partition.source, record, codec, reason, way.transaction, way.outbox)

    def _put(self, sent: _Sent, buffers: list[memoryview | bytearray]) -> None:
        size = sum(map(len, buffers))
        self.account.bytes += size
        stamped = sent.attributes & LOG_APPEND_TIME  # all its records have the time of the last
        self.account.times(sent.max_timestamp if stamped else sent.base_timestamp, sent.max_timestamp)
        self._way.outbox.put(
            Outgoing(self.partition.target, buffers, size, sent.count, sent.written, sent.refused, sent.late)
        )

    def unavailable(self, reason: str) -> TargetUnavailable:
        """The error of the target's partition where it takes or gives no records."""
        source, target, partition = self._way.slot.flow.source.alias, self._way.slot.flow.target.alias, self.partition
        return TargetUnavailable(source, partition.topic, partition.partition, target, partition.remote_topic, reason)

    def check_adjacent(self, account: Account, base: int, count: int) -> None:
        """Nothing of others may lie between what this flow wrote last and ``base`` (invariants B and G), unless declared."""
        way, partition = self._way, self.partition
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


@dataclass(slots=True)
class _Sent:
    """A batch on its way: what to do when the target has given it an offset, or refused it."""

    intake: Intake
    account: Account
    runs: list[tuple[int, int]]
    count: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    payload: memoryview
    digest: bytes

    def written(self, base: int) -> None:
        intake, account = self.intake, self.account
        intake.check_adjacent(account, base, self.count)
        account.written(self.runs, base)
        read_back = intake._way.read_back
        if read_back is None:
            account.digest.add(
                self.attributes, self.count, self.base_timestamp, self.max_timestamp, len(self.payload), self.digest
            )
            return
        read_back.expect(
            intake.partition.target,
            Expected(
                base, self.count, self.attributes, self.base_timestamp, self.max_timestamp, self.payload, self.digest,
                account.digest, self._differs, self._unread, intake.partition.keeps_times,
            ),
        )  # fmt: skip

    def refused(self, answer: Produced) -> Exception:
        slot, partition = self.intake._way.slot, self.intake.partition
        target = slot.flow.target.alias
        if answer.error == TOPIC_DENIED:
            where = (slot.flow.source.alias, partition.topic, partition.partition)
            return AccessLost(*where, target, partition.remote_topic, "Write")
        offsets = [first + number for first, count in self.runs for number in range(count)]
        about = [offsets[number] for number in answer.refused if 0 <= number < len(offsets)]
        if len(offsets) == 1:
            about = offsets
        return WriteRefused(
            slot.flow.source.alias, partition.topic, partition.partition, slot.flow.target.alias,
            partition.remote_topic, offsets[0], offsets[-1], answer.error, answer.message or error_name(answer.error),
            tuple(about),
        )  # fmt: skip

    def late(self, reason: str) -> Exception:
        return self.intake.unavailable(reason)

    def _unread(self, code: int) -> Exception:
        if code == TOPIC_DENIED:
            slot, partition = self.intake._way.slot, self.intake.partition
            where = (slot.flow.source.alias, partition.topic, partition.partition)
            return AccessLost(*where, slot.flow.target.alias, partition.remote_topic, "Read")
        return self.intake.unavailable(f"it can't be read back ({error_name(code)})")

    def _differs(self, target_offset: int, difference: str) -> Exception:
        slot, partition = self.intake._way.slot, self.intake.partition
        return ReadBackDiffers(
            slot.flow.source.alias, partition.topic, partition.partition, slot.flow.target.alias,
            partition.remote_topic, self.runs[0][0], sum(self.runs[-1]) - 1, target_offset, difference,
        )  # fmt: skip

"""The slow path of one partition: batches that can't be copied whole, or are merged, decoded and written again (invariant D).

Memory is bounded by what is decoded: batches are unpacked one by one, and sent when they come to ``UNPACKED_BYTES``.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from airmirror.slot.account import payload_digest
from airmirror.slot.delivery import Delivery, Sent
from airmirror.slot.errors import ReadBackDiffers
from airmirror.slot.refusals import RecordTooLarge
from airmirror.wire.batch import CODEC_MASK, MESSAGE_SET, Batch, BatchTooLarge, CorruptBatch
from airmirror.wire.batches import HEADER_SIZE, parse
from airmirror.wire.merging import MERGED_SIZE, RUN_RECORDS

if TYPE_CHECKING:
    from airmirror.wire.records import Records, Unpacked
    from airmirror.wire.small import Run
    from airmirror.wire.transcode import DenseBatch

log = logging.getLogger(__name__)

UNPACKED_BYTES = 64 << 20  # of their records without compression


class SlowPath:
    """Batches of one kind that follow each other, until they are sent."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._lost = sorted(delivery.refusals.lost)
        self._run: list[tuple[Batch, bool]] = []  # and whether it could go whole
        self._kind = 0  # their codec, and whether they are of an old format
        self._run_first = 0
        self._run_bytes = 0
        self._run_records = 0

    def add(self, buffer: memoryview, batch: Batch, whole: bool, position: int) -> None:
        """Let a batch wait, of which the records from ``position`` on are to be sent; ``whole``: it could go whole.

        Those that wait already are sent first where they are of another kind, or many.
        """
        kind = batch.attributes & (CODEC_MASK | MESSAGE_SET)
        most = self._delivery.context.merging.run
        if kind != self._kind or self._run_bytes + batch.size > most or self._run_records > RUN_RECORDS:
            self.flush(buffer)
        if not self._run:
            self._kind, self._run_first, self._run_bytes, self._run_records = kind, position, 0, 0
        self._run.append((batch, whole))
        self._run_bytes += batch.size
        self._run_records += batch.count

    def merge(self, buffer: memoryview, run: Run, position: int) -> None:
        """Send the records from ``position`` on of small batches without compression, after what waits."""
        self.flush(buffer)
        from airmirror.wire.records import records_of  # loads the compiled loops

        delivery, end = self._delivery, self._delivery.end
        delivery.decodes = True
        try:
            records = records_of(buffer, run.table, position, end)
        except CorruptBatch as error:
            raise delivery.corrupt(max(error.base_offset, position), str(error)) from error
        first, after, offsets = run.extent(position, end)
        self._send(records, 0, first=first, end=after, offsets=offsets)

    def flush(self, buffer: memoryview) -> None:
        """Send the batches that wait, some at a time; one that can go whole does where it is alone.

        So does one whose records are too many to be merged.
        """
        delivery, run, self._run = self._delivery, self._run, []
        if not run:
            return
        if (
            len(run) == 1
            and run[0][1]
            and delivery.context.merging.compression_of(run[0][0].codec).codec == run[0][0].codec
        ):
            delivery.send_whole(buffer, run[0][0])
            return
        from airmirror.wire.codecs import UnknownCodec
        from airmirror.wire.records import Unpacked, index  # loads the compiled loops

        delivery.decodes = True
        try:
            if not self._kind:
                batches = [batch for batch, _ in run]
                self._send_batches(batches, index(buffer, batches, self._run_first, delivery.end))
                return
            unpacked = Unpacked(buffer)
            for batch, whole in run:
                try:
                    unpacked.add(batch, MERGED_SIZE if whole else delivery.largest)
                except BatchTooLarge:
                    self._send_unpacked(unpacked)
                    unpacked = Unpacked(buffer)
                    if whole:
                        delivery.send_whole(buffer, batch)
                    else:
                        self._leave_out(batch)
                if unpacked.size > UNPACKED_BYTES:
                    self._send_unpacked(unpacked)
                    unpacked = Unpacked(buffer)
            self._send_unpacked(unpacked)
        except CorruptBatch as error:
            raise delivery.corrupt(max(error.base_offset, self._run_first), str(error)) from error
        except UnknownCodec as error:
            raise delivery.corrupt(self._run_first, str(error)) from error

    def _send_unpacked(self, unpacked: Unpacked) -> None:
        if unpacked.batches:
            self._send_batches(unpacked.batches, unpacked.records(self._run_first, self._delivery.end))

    def _send_batches(self, batches: Sequence[Batch], records: Records) -> None:
        """Send ``records``, which are those of ``batches`` that are to be copied."""
        first = max(batches[0].base_offset, self._run_first)
        offsets = sum(min(batch.next_offset, self._delivery.end) - max(batch.base_offset, first) for batch in batches)
        self._send(records, batches[0].codec, first=first, end=batches[-1].next_offset, offsets=offsets)

    def _send(self, records: Records, codec: int, *, first: int, end: int, offsets: int) -> None:
        """Send records of batches that have ``offsets`` offsets in ``[first, end)``; those without a record are holes."""
        from airmirror.wire.transcode import dense_batches

        delivery = self._delivery
        if len(records) < offsets and not delivery.partition.compacted:
            delivery.unexpected_hole(*_hole(records.offsets.tolist(), first, min(end, delivery.end)))
        delivery.account.holes += offsets - len(records)
        if self._lost:
            records, lost = records.split(self._lost)
            for number, offset in enumerate(lost.offsets.tolist()):
                self._lose(lost.slice(number, number + 1), codec, delivery.refusals.lost[offset])
        merging = delivery.context.merging
        most = delivery.partition.max_message_bytes
        for dense in dense_batches(records, merging.compression_of(codec), most, merging.size):
            self._send_dense(dense)

    def _leave_out(self, batch: Batch) -> None:
        """Declare the records of a batch lost that is too large to be taken apart (errors.tolerance=all)."""
        delivery = self._delivery
        first, end = max(batch.base_offset, self._run_first), min(batch.next_offset, delivery.end)
        error = delivery.over_limit(first)
        if not delivery.tolerant:
            raise error
        delivery.account.lost += end - first
        log.warning("%s offsets %d to %d are declared lost: %s", delivery.partition.key, first, end - 1, error)

    def _send_dense(self, dense: DenseBatch) -> None:
        delivery, partition, context = self._delivery, self._delivery.partition, self._delivery.context
        count = len(dense.offsets)
        if len(dense.payload) + HEADER_SIZE > partition.max_message_bytes:
            size, place = len(dense.payload) + HEADER_SIZE, (*delivery.where, *delivery.there)
            too_large = RecordTooLarge(*place, int(dense.offsets[0]), size, partition.max_message_bytes)
            if not delivery.tolerant:
                raise too_large
            self._lose(dense.records, dense.codec, str(too_large))
            return
        times = (dense.base_timestamp, dense.max_timestamp)
        batch = context.outbox.batch(partition.remote, dense.payload, count, times, dense.codec)
        if context.read_back is not None:
            self._compare_with_fetched(batch, dense)
        payload = memoryview(batch)[HEADER_SIZE:]
        sent = Sent(
            delivery=delivery,
            account=delivery.account,
            runs=dense.runs(),
            count=count,
            attributes=dense.codec,
            base_timestamp=dense.base_timestamp,
            max_timestamp=dense.max_timestamp,
            payload=payload,
            digest=payload_digest(payload),
        )
        delivery.put(sent, [batch])

    def _compare_with_fetched(self, batch: bytearray, dense: DenseBatch) -> None:
        """The records of a batch that was written again are those that were fetched (invariant D)."""
        from airmirror.wire.records import first_difference, index

        found = index(memoryview(batch), list(parse(memoryview(batch), 0, len(batch))), largest=self._delivery.largest)
        number = first_difference(dense.records, found)
        if number >= 0 or len(found) != len(dense.records):
            place, offsets = (*self._delivery.where, *self._delivery.there), dense.offsets
            difference = "the slow path did not write what was fetched"
            raise ReadBackDiffers(*place, int(offsets[0]), int(offsets[-1]), -1, difference)

    def _lose(self, record: Records, codec: int, reason: str) -> None:
        """Declare a record lost, and write it to the dead letter topic where it fits (errors.tolerance=all)."""
        delivery, context, offset = self._delivery, self._delivery.context, int(record.offsets[0])
        delivery.account.lost += 1
        log.warning("%s offset %d is declared lost: %s", delivery.partition.key, offset, reason)
        if context.dead_letters is not None and offset not in delivery.refusals.unfit:
            context.dead_letters.write(delivery.partition.key, record, codec, reason, context.outbox)


def _hole(offsets: Sequence[int], first: int, end: int) -> tuple[int, int]:
    """The first and the last of the offsets in ``[first, end)`` that come before any other of those that are lacking."""
    expected = first
    for offset in offsets:
        if offset > expected:
            return expected, offset - 1
        expected = offset + 1
    return expected, end - 1

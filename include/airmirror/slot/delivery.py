"""One partition's delivery to the target: the account of the open transaction, batches on their way, and their answers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from airmirror.clusters.protocol.errors import error_name
from airmirror.clusters.protocol.routes import TOPIC_DENIED, Routes
from airmirror.clusters.protocol.transactions import TransactionalId
from airmirror.slot.account import Account, payload_digest
from airmirror.slot.adjacent import foreign
from airmirror.slot.contract import Slot, SlotPartition
from airmirror.slot.dead_letters import DeadLetterTopic
from airmirror.slot.errors import (
    AbortLeftOut,
    AccessLost,
    PartitionUnavailable,
    ReadBackDiffers,
    SourceCorrupt,
    SourceDiverged,
    TargetTruncated,
    TargetUnavailable,
    UnexpectedHole,
)
from airmirror.slot.outbox import Outbox, Outgoing
from airmirror.slot.readback import Expected, ReadBack
from airmirror.slot.refusals import UNSOUND, BatchOverLimit, Refusals, WriteRefused, is_tolerant
from airmirror.wire.batch import CODEC_MASK, LOG_APPEND_TIME, Batch, BatchTooLarge, CorruptBatch
from airmirror.wire.batches import HEADER_SIZE, restamp
from airmirror.wire.markers import Ended
from airmirror.wire.merging import Merging
from airmirror.wire.requests import Produced


@dataclass(frozen=True)
class CopyContext:
    """The shared context of all partitions of a slot. ``read_back`` is None with window.verify=acks."""

    slot: Slot
    target: Routes
    transaction: TransactionalId
    outbox: Outbox
    read_back: ReadBack | None
    merging: Merging
    dead_letters: DeadLetterTopic | None = None


class Delivery:
    """The part of one partition that is sent in the open transaction.

    ``end``: of its source offsets; it moves while the slot follows.
    """

    def __init__(self, context: CopyContext, partition: SlotPartition, end: int, refusals: Refusals) -> None:
        self.context = context
        self.partition = partition
        self.end = end
        self.refusals = refusals
        self.account = Account(
            partition.start,
            partition.target_end,
            leader_epoch=partition.leader_epoch,
            target_epoch=partition.target_epoch,
        )
        self.tolerant = is_tolerant(context.slot.flow)
        self.largest = context.slot.flow.window.largest_batch_bytes
        self.decodes = False  # whether records had to be decoded
        self._known_end = partition.known_end

    @property
    def where(self) -> tuple[str, str, int]:
        """The source and its partition, as errors have them."""
        return self.context.slot.flow.source.alias, *self.partition.key

    @property
    def there(self) -> tuple[str, str]:
        """The target and the remote topic, as errors have them after ``where``."""
        return self.context.slot.flow.target.alias, self.partition.remote_topic

    def committed(self, position: int, leader_epoch: int) -> None:
        """Begin the account of the next transaction."""
        if self.account.ranges:
            self._known_end += 1  # the marker that has committed them
        before = self.account
        self.account = Account(position, before.target_end, leader_epoch=leader_epoch, target_epoch=before.target_epoch)

    def send_whole(self, buffer: memoryview, batch: Batch) -> None:
        context = self.context
        producer = context.transaction
        sequence = context.outbox.sequence(self.partition.remote, batch.count)
        payload = buffer[batch.position + HEADER_SIZE : batch.position + batch.size]
        digest = payload_digest(payload)
        restamp(buffer, batch, producer.producer_id, producer.epoch, sequence)
        self.put(
            Sent(
                delivery=self,
                account=self.account,
                runs=[(batch.base_offset, batch.count)],
                count=batch.count,
                attributes=batch.attributes & (CODEC_MASK | LOG_APPEND_TIME),
                base_timestamp=batch.base_timestamp,
                max_timestamp=batch.max_timestamp,
                payload=payload,
                digest=digest,
            ),
            [buffer[batch.position : batch.position + batch.size]],
        )

    def put(self, sent: Sent, buffers: list[memoryview | bytearray]) -> None:
        size = sum(map(len, buffers))
        self.account.bytes += size
        self.account.sent(sent.runs)
        stamped = sent.attributes & LOG_APPEND_TIME  # all its records have the time of the last
        self.account.times(sent.max_timestamp if stamped else sent.base_timestamp, sent.max_timestamp)
        self.context.outbox.put(
            Outgoing(
                target=self.partition.remote,
                buffers=buffers,
                size=size,
                count=sent.count,
                on_written=sent.written,
                on_refused=sent.refused,
                on_late=sent.late,
            )
        )

    def check_adjacent(self, account: Account, base: int, count: int) -> None:
        """Nothing of others may lie between what this flow wrote last and ``base`` (invariants B and G), unless declared."""
        context, last = self.context, account.target_end
        if base < last:
            raise TargetTruncated(*self.where, *self.there, last, base)
        if base > self._known_end and not context.slot.flow.is_aggregate:
            error = foreign(context.slot.flow.source.alias, context.target, self.partition, max(last, 0), base)
            if error is not None:
                raise error
        self._known_end = base + count

    def unavailable(self, reason: str) -> TargetUnavailable:
        """The error of the target's partition where it takes or gives no records."""
        return TargetUnavailable(*self.where, *self.there, reason)

    def corrupt(self, offset: int, reason: str) -> SourceCorrupt:
        return SourceCorrupt(*self.where, offset, reason)

    def diverged(self, position: int, batch: Batch) -> SourceDiverged:
        """The error of a log whose batch before the position is not the one that was copied."""
        return SourceDiverged(*self.where, position, batch.leader_epoch, batch.base_offset, is_other=True)

    def left_out(self, found: Sequence[Ended]) -> AbortLeftOut:
        """The error of transactions that the source's leader did not name before it came to their abort markers."""
        producer, first, marker = min(found, key=lambda each: each.first_offset)
        until = self.account.start if first < self.account.start else -1
        return AbortLeftOut(*self.where, producer, first, until, marker, tuple(map(tuple, found)))

    def lapsed(self, known: Sequence[Ended]) -> PartitionUnavailable:
        """The error of a log that has lost the markers of transactions that an earlier attempt has found."""
        self.refusals.left_out = [each for each in self.refusals.left_out if each not in known]
        reason = f"the abort marker at offset {known[0].marker} is not there any more"
        return PartitionUnavailable(*self.where, reason)

    def over_limit(self, offset: int) -> BatchOverLimit:
        return BatchOverLimit(*self.where, offset, self.largest, self.context.slot.flow.target.alias)

    def unexpected_hole(self, first: int, last: int) -> None:
        raise UnexpectedHole(*self.where, first, last)


@dataclass(slots=True)
class Sent(Expected):
    """A batch on its way: the answer to the target's offset for it, or refusal; ``runs``: of source offsets (first, count)."""

    delivery: Delivery
    runs: list[tuple[int, int]]

    @property
    def keeps_times(self) -> bool:
        return self.delivery.partition.keeps_times

    def written(self, base: int) -> None:
        delivery, account = self.delivery, self.account
        delivery.check_adjacent(account, base, self.count)
        account.written(self.runs, base)
        if delivery.context.read_back is not None:
            self.target_first = base
            delivery.context.read_back.expect(delivery.partition.remote, self)
            return
        account.target_epoch = -1
        account.digest.add(
            self.attributes, self.count, self.base_timestamp, self.max_timestamp, len(self.payload), self.digest
        )

    def refused(self, answer: Produced) -> Exception:
        where, there = self.delivery.where, self.delivery.there
        if answer.error == TOPIC_DENIED:
            return AccessLost(*where, *there, "Write")
        first, last = self.runs[0][0], sum(self.runs[-1]) - 1
        if answer.error in UNSOUND and (damage := self._damage()):
            return self.delivery.corrupt(first, damage)
        about = (first,) if self.count == 1 else tuple(_offsets(self.runs, answer.refused))
        said = answer.message or error_name(answer.error)
        return WriteRefused(*where, *there, first, last, code=answer.error, error=said, offsets=about)

    def late(self, reason: str) -> Exception:
        return self.delivery.unavailable(reason)

    def _damage(self) -> str:
        """What is wrong with the batch itself, which was damaged before it was fetched; empty: nothing."""
        from airmirror.wire.codecs import UnknownCodec
        from airmirror.wire.records import index  # loads the compiled loops

        fetched = Batch(
            position=-HEADER_SIZE,
            size=HEADER_SIZE + len(self.payload),
            base_offset=self.runs[0][0],
            leader_epoch=-1,
            checksum=0,
            attributes=self.attributes & ~LOG_APPEND_TIME,
            last_offset_delta=self.count - 1,
            base_timestamp=self.base_timestamp,
            max_timestamp=self.max_timestamp,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            count=self.count,
        )
        try:
            index(self.payload, [fetched], largest=self.delivery.largest)
        except BatchTooLarge:  # which says nothing of what is in it
            return ""
        except (CorruptBatch, UnknownCodec) as error:
            return str(error)
        return ""

    def unread(self, code: int) -> Exception:
        if code == TOPIC_DENIED:
            return AccessLost(*self.delivery.where, *self.delivery.there, "Read")
        return self.delivery.unavailable(f"it can't be read back ({error_name(code)})")

    def differs(self, target_offset: int, difference: str) -> Exception:
        place, ends = (*self.delivery.where, *self.delivery.there), (self.runs[0][0], sum(self.runs[-1]) - 1)
        return ReadBackDiffers(*place, *ends, target_offset, difference)


def _offsets(runs: Sequence[tuple[int, int]], numbers: Iterable[int]) -> Iterator[int]:
    """The source offsets of records by their number in ``runs`` (first offset, count), of those that there are."""
    ends = list(accumulate(count for _, count in runs))
    for number in numbers:
        if 0 <= number < ends[-1]:
            run = bisect_right(ends, number)
            yield sum(runs[run]) - (ends[run] - number)

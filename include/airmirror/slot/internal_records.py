"""The records that go with every commit: MirrorMaker 2's progress and our mappings (invariant A)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kafka.record.default_records import DefaultRecordBatchBuilder

from airmirror.partitions import TopicPartition
from airmirror.wire.mirrormaker import source_offset_record

if TYPE_CHECKING:
    from airmirror.slot.contract import Slot
    from airmirror.slot.delivery import CopyContext
    from airmirror.slot.intake import Intake

BATCH_BYTES = 512 << 10

KeyValue = tuple[bytes, bytes | None]
Build = Callable[[int, int, int], bytes]  # producer id, epoch, sequence -> a transactional batch


def commit_records(context: CopyContext, intakes: Sequence[Intake]) -> dict[TopicPartition, list[tuple[int, Build]]]:
    """Return batches as (number of records, how to build it), by partition of the internal topics."""
    slot = context.slot
    now = int(time.time() * 1000)
    by_partition: dict[TopicPartition, list[KeyValue]] = {}
    for intake in intakes:
        partition, account = intake.partition, intake.account
        mapping = account.record(
            partition.source,
            partition.remote_topic,
            (partition.source_topic_id, partition.target_topic_id),
            window=slot.window,
            time_ms=now,
            slot=slot.number,
            checksum=-1 if partition.compacted else account.checksum,  # a cleaner rewrites batches
        )
        by_partition.setdefault(TopicPartition(slot.mapping_topic, 0), []).append(
            (mapping.encode_key(), mapping.encode_value())
        )
        target, progress = progress_record(slot, partition.topic, partition.partition, account.end - 1)
        by_partition.setdefault(target, []).append(progress)
    return batches(by_partition, now)


def batches(
    records: Mapping[TopicPartition, Sequence[KeyValue]], timestamp: int
) -> dict[TopicPartition, list[tuple[int, Build]]]:
    """Return batches by partition as (number of records, how to build it), in the order of the records."""
    return {
        target: [(len(part), _builder(part, timestamp)) for part in _parts(found)] for target, found in records.items()
    }


def progress_record(slot: Slot, topic: str, partition: int, offset: int | None) -> tuple[TopicPartition, KeyValue]:
    """MirrorMaker 2's progress of a partition and where it belongs; None deletes it."""
    number, record = source_offset_record(
        slot.flow.source.alias, topic, partition, offset, partitions=slot.progress_partitions
    )
    return TopicPartition(slot.progress_topic, number), record


def _parts(records: Iterable[KeyValue]) -> list[list[KeyValue]]:
    parts: list[list[KeyValue]] = []
    size = BATCH_BYTES
    for key, value in records:
        length = len(key) + len(value or b"")
        if size + length > BATCH_BYTES:
            parts.append([])
            size = 0
        parts[-1].append((key, value))
        size += length + 30
    return parts


def _builder(records: list[KeyValue], timestamp: int) -> Build:
    def build(producer_id: int, epoch: int, sequence: int) -> bytes:
        builder = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=0,
            is_transactional=True,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            batch_size=1 << 30,
        )
        for number, (key, value) in enumerate(records):
            builder.append(number, timestamp=timestamp, key=key, value=value, headers=[])
        return bytes(builder.build())

    return build

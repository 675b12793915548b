"""The records that go with every commit: MirrorMaker 2's progress and our mappings (invariant A)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kafka.record.default_records import DefaultRecordBatchBuilder

from airmirror.clusters.protocol.errors import error_name
from airmirror.clusters.protocol.transactions import TransactionalId
from airmirror.config import Flow
from airmirror.partitions import TopicPartition
from airmirror.slot.errors import InternalTopicUnfit
from airmirror.slot.outbox import Outbox, Outgoing
from airmirror.wire.mirrormaker import source_offset_record
from airmirror.wire.requests import Produced

if TYPE_CHECKING:
    from airmirror.slot.delivery import CopyContext
    from airmirror.slot.intake import Intake

BATCH_BYTES = 512 << 10

KeyValue = tuple[bytes, bytes | None]


def commit_records(context: CopyContext, intakes: Sequence[Intake]) -> dict[TopicPartition, list[KeyValue]]:
    """Return the records of a commit, by partition of the internal topics."""
    slot = context.slot
    now = int(time.time() * 1000)
    by_partition: dict[TopicPartition, list[KeyValue]] = {}
    for intake in intakes:
        partition, account = intake.partition, intake.account
        mapping = account.record(
            partition.key,
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
        place = (slot.progress_topic, slot.progress_partitions)
        target, progress = progress_record(slot.flow, partition.key, account.end - 1, *place)
        by_partition.setdefault(target, []).append(progress)
    return by_partition


def put_records(outbox: Outbox, records: Mapping[TopicPartition, Sequence[KeyValue]]) -> None:
    """Put records into the outbox, in their order, for the transaction that is open."""
    transaction, timestamp = outbox.transaction, int(time.time() * 1000)
    for target, found in records.items():
        refused = partial(_refused, transaction.routes.alias, target.topic)
        for part in _parts(found):
            batch = _batch(part, timestamp, transaction, outbox.sequence(target, len(part)))
            outbox.put(Outgoing(target=target, buffers=[batch], size=len(batch), count=len(part), on_refused=refused))


def progress_record(
    flow: Flow, key: TopicPartition, offset: int | None, topic: str, partitions: int
) -> tuple[TopicPartition, KeyValue]:
    """MirrorMaker 2's progress of a partition, None deletes it; and to which of the ``partitions`` of ``topic`` it belongs."""
    number, record = source_offset_record(flow.source.alias, *key, offset, partitions=partitions)
    return TopicPartition(topic, number), record


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


def _batch(records: list[KeyValue], timestamp: int, transaction: TransactionalId, sequence: int) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=True,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        base_sequence=sequence,
        batch_size=1 << 30,
    )
    for number, (key, value) in enumerate(records):
        builder.append(number, timestamp=timestamp, key=key, value=value, headers=[])
    return bytes(builder.build())


def _refused(cluster: str, topic: str, answer: Produced) -> Exception:
    return InternalTopicUnfit(cluster, topic, f"refuses a record: {answer.message or error_name(answer.error)}")

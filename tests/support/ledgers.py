"""Records of the internal topics as a ledger loads them."""

from __future__ import annotations

from uuid import UUID

from airmirror.partitions import Entry
from airmirror.wire.mappings import MappedRange, MappingRecord, Verified

MAPPINGS, PROGRESS = "airmirror-mappings.east.internal", "mm2-offsets.east.internal"
TOPIC_ID, OTHER_TOPIC_ID = UUID(int=1), UUID(int=2)  # of the internal topic
ORDERS, ORDERS_AGAIN = UUID(int=7), UUID(int=8)  # of the source topic, and of the one made after it


def mapping(
    start: int, end: int, topic: str = "orders", partition: int = 0, window: str = "w1", topic_id: UUID = ORDERS
) -> MappingRecord:
    copied = end - start
    return MappingRecord(
        source_topic_id=topic_id,
        topic=topic,
        partition=partition,
        source_start=start,
        window=window,
        slot=0,
        time_ms=1000 + start,
        source_end=end,
        target_topic_id=UUID(int=9),
        remote_topic=f"east.{topic}",
        target_start=start,
        target_end=end,
        copied=copied,
        control=0,
        aborted=0,
        holes=0,
        lost=0,
        size=10 * copied,
        max_timestamp=5,
        leader_epoch=0,
        digest=bytes(16),
        ranges=(MappedRange(start, start, copied),) if copied else (),
    )


def verified(
    offset: int, topic: str = "orders", partition: int = 0, topic_id: UUID = ORDERS, seen: int = 0
) -> Verified:
    return Verified(
        topic=topic,
        partition=partition,
        source_topic_id=topic_id,
        offset=offset,
        target_end=offset + 1,
        window="w1",
        time_ms=0,
        seen=seen,
    )


def written(offset: int, record: object) -> Entry:
    """A record of the mapping topic at an offset."""
    return Entry(0, offset, offset, record.encode_key(), record.encode_value())  # type: ignore[attr-defined]


def deleted(offset: int, record: object) -> Entry:
    """The tombstone of a record of the mapping topic, at an offset."""
    return Entry(0, offset, offset, record.encode_key(), None)  # type: ignore[attr-defined]


def compacted(entries: list[Entry]) -> list[Entry]:
    """What the cleaner leaves in the end: the last record of every key, no tombstones."""
    last = {entry.key: entry for entry in entries}
    return [entry for entry in entries if last[entry.key] is entry and entry.value is not None]

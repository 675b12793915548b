"""Records of the internal topics as a ledger loads them."""

from __future__ import annotations

from uuid import UUID

from airmirror.windows.index import Entry
from airmirror.wire.segments import Segment, SegmentRecord, Verified

SEGMENTS, PROGRESS = "airmirror-segments.east.internal", "mm2-offsets.east.internal"
TOPIC_ID, OTHER_TOPIC_ID = UUID(int=1), UUID(int=2)  # of the internal topic
ORDERS, ORDERS_AGAIN = UUID(int=7), UUID(int=8)  # of the source topic, and of the one made after it


def segment(
    start: int, end: int, topic: str = "orders", partition: int = 0, window: str = "w1", topic_id: UUID = ORDERS
) -> SegmentRecord:
    copied = end - start
    return SegmentRecord(
        topic_id, topic, partition, start, window, 0, 1000 + start, end, UUID(int=9), f"east.{topic}", start, end,
        copied, 0, 0, 0, 0, 10 * copied, 5, 0, bytes(16), (Segment(start, start, copied),) if copied else (),
    )  # fmt: skip


def verified(offset: int, topic: str = "orders", partition: int = 0, topic_id: UUID = ORDERS) -> Verified:
    return Verified(topic, partition, topic_id, offset, offset + 1, "w1", 0)


def written(offset: int, record: object) -> Entry:
    """A record of the segment topic at an offset."""
    return Entry(0, offset, offset, record.encode_key(), record.encode_value())  # type: ignore[attr-defined]


def deleted(offset: int, record: object) -> Entry:
    """The tombstone of a record of the segment topic, at an offset."""
    return Entry(0, offset, offset, record.encode_key(), None)  # type: ignore[attr-defined]


def compacted(entries: list[Entry]) -> list[Entry]:
    """What the cleaner leaves in the end: the last record of every key, no tombstones."""
    last = {entry.key: entry for entry in entries}
    return [entry for entry in entries if last[entry.key] is entry and entry.value is not None]

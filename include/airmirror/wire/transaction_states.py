"""Records of ``__transaction_state``, in which a cluster's transaction coordinators keep what each transactional id is about.

A key is INT16 version, STRING transactional id. A value of version 0 or 1 (TransactionLogValue.json) names the partitions of the
transaction that is under way; those of transactions that have ended lie in the log until it is compacted.
"""

from __future__ import annotations

from airmirror.wire.primitives import MalformedRecord, Reader

_KEY_VERSION, _FLEXIBLE, _NEWEST = 0, 1, 1


def transactional_id(key: bytes | None) -> str | None:
    """The transactional id that a record is about; None: a key of a kind that came later. Raises MalformedRecord."""
    if key is None:
        raise MalformedRecord("no key")
    reader = Reader(key)
    return reader.string() if reader.int16() == _KEY_VERSION else None


def topics_of(value: bytes | None) -> frozenset[str]:
    """The topics of a record's transaction; none where the id was forgotten, or in a format that came later.

    Raises MalformedRecord.
    """
    if value is None:
        return frozenset()
    reader = Reader(value)
    version = reader.int16()
    if not 0 <= version <= _NEWEST:
        return frozenset()
    is_flexible = version >= _FLEXIBLE
    reader.take(8 + 2 + 4 + 1)  # producer id and epoch, timeout, state
    return frozenset(_topic(reader, is_flexible=is_flexible) for _ in range(_count(reader, is_flexible=is_flexible)))


def _topic(reader: Reader, *, is_flexible: bool) -> str:
    """Read a topic, and over the numbers of its partitions."""
    name = reader.utf8(reader.unsigned_varint() - 1, "topic's name") if is_flexible else reader.string()
    reader.take(4 * _count(reader, is_flexible=is_flexible))
    for _ in range(reader.unsigned_varint() if is_flexible else 0):  # tagged fields
        reader.unsigned_varint()
        reader.take(reader.unsigned_varint())
    return name


def _count(reader: Reader, *, is_flexible: bool) -> int:
    """Read how many items follow; null counts as none."""
    count = reader.unsigned_varint() - 1 if is_flexible else reader.int32()
    if count > reader.left:
        raise MalformedRecord(f"{count} items in {reader.left} bytes")
    return max(0, count)

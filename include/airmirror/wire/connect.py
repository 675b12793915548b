"""What the workers of Kafka Connect tell each other through their group: which of them runs which tasks.

ConnectProtocol and IncrementalCooperativeConnectProtocol of Kafka 4.2.0, versions 0 to 2. A cooperative worker is assigned only
what is new, and names what it has when it joins; so both are read.
"""

from __future__ import annotations

from airmirror.wire.primitives import MalformedRecord, Reader

MOST_TASKS = 100_000

Tasks = frozenset[tuple[str, int]]


def worker_tasks(metadata: bytes, assignment: bytes) -> Tasks:
    """The tasks of a group's member, by its connector's name and number. Raises MalformedRecord."""
    before = _allocated(metadata)
    if not assignment:
        return before
    given, revoked = _assigned(assignment)
    return frozenset((before - revoked) | given)


def worker_url(metadata: bytes) -> str:
    """The address of the worker's REST API; empty where it has none. Raises MalformedRecord."""
    reader = Reader(metadata)
    reader.int16()
    return reader.string()


def _allocated(metadata: bytes) -> Tasks:
    reader = Reader(metadata)
    version = reader.int16()
    reader.string()
    reader.int64()
    size = reader.int32() if version >= 1 and reader.left else 0
    return _assigned(reader.take(size))[0] if size > 0 else frozenset()


def _assigned(data: bytes) -> tuple[Tasks, Tasks]:
    """The partitions that are assigned, and those that are revoked."""
    reader = Reader(data)
    version = reader.int16()
    reader.int16()
    reader.string()
    reader.string()
    reader.int64()
    given = _tasks(reader)
    return given, _tasks(reader) if version >= 1 else frozenset()


def _tasks(reader: Reader) -> Tasks:
    found: set[tuple[str, int]] = set()
    for _ in range(_count(reader)):
        connector = reader.string()
        found.update((connector, reader.int32()) for _ in range(_count(reader)))
    return frozenset(found)


def _count(reader: Reader) -> int:
    count = max(0, reader.int32())  # null is -1
    if count > min(MOST_TASKS, reader.left):
        raise MalformedRecord(f"{count} entries in {reader.left} bytes")
    return count

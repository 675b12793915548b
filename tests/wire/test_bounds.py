"""Few bytes that claim or become many: refused before they cost memory, on every way that takes batches apart."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import crc32c
import pytest

from airmirror.wire.batch import LOG_APPEND_TIME, MOST_RECORDS, Batch, BatchTooLarge, CorruptBatch
from airmirror.wire.batches import HEADER_SIZE, build, parse
from airmirror.wire.codecs import compress
from airmirror.wire.headers import record
from airmirror.wire.plain import plain_records
from airmirror.wire.primitives import varint
from airmirror.wire.records import index
from support.old_formats import Message, compressed

MEGABYTE = 1 << 20
PACKED = (1, 2, 3, 4)  # the codecs that compress


@contextmanager
def at_most(megabytes: int) -> Iterator[None]:
    """Python's allocations within the block stay below; those of the libraries are Python's too where they return bytes."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < megabytes * MEGABYTE, f"{peak >> 20} MiB"


def bomb(codec: int, size: int) -> bytearray:
    """A batch of one record whose value is ``size`` zeros."""
    body = varint(-1) + varint(size) + bytes(size) + varint(0)
    return build(compress(codec, record(body)), count=1, base_timestamp=0, max_timestamp=0, codec=codec)


def only(log: bytes) -> tuple[memoryview, Batch]:
    buffer = memoryview(log)
    [batch] = parse(buffer, 0, len(log))
    return buffer, batch


@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize(
    "unpack", [lambda *a: list(plain_records(*a)), lambda b, one, most: index(b, [one], largest=most)]
)
def test_a_batch_over_the_limit_is_refused_as_soon_as_it_is_over(codec: int, unpack: Callable[..., object]) -> None:
    buffer, batch = only(bomb(codec, 40 * MEGABYTE))
    with at_most(8), pytest.raises(BatchTooLarge, match="offset 0 holds more than 1048576 bytes") as caught:
        unpack(buffer, batch, MEGABYTE)
    assert not caught.value.transient and caught.value.limit == MEGABYTE


@pytest.mark.parametrize("codec", PACKED)
def test_a_batch_at_the_limit_is_taken(codec: int) -> None:
    buffer, batch = only(bomb(codec, 5000))
    size = len(record(varint(-1) + varint(5000) + bytes(5000) + varint(0)))
    assert len(index(buffer, [batch], largest=size)) == 1
    assert [len(each.value or b"") for each in plain_records(buffer, batch, size)] == [5000]
    for refuse in (
        lambda: index(buffer, [batch], largest=size - 1),
        lambda: list(plain_records(buffer, batch, size - 1)),
    ):
        with pytest.raises(BatchTooLarge):
            refuse()


def test_messages_of_old_formats_over_the_limit_are_refused_when_they_are_found() -> None:
    log = compressed([Message(None, bytes(100_000), 5)] * 40, 1, 1, 0)
    with at_most(8), pytest.raises(BatchTooLarge, match="offset 39"):
        list(parse(memoryview(log), 0, len(log), MEGABYTE))
    assert [batch.count for batch in parse(memoryview(log), 0, len(log))] == [40]


def claiming(count: int, codec: int) -> bytes:
    """A batch of 71 bytes with a right checksum that says it holds ``count`` records."""
    batch = build(bytes(10), count=count, base_timestamp=0, max_timestamp=0, codec=codec)
    assert len(batch) == 71
    return bytes(batch)


@pytest.mark.parametrize(
    ("count", "codec"), [(2, 0), (20_000_000, 0), (2**31 - 1, 0), (MOST_RECORDS + 1, 4), (2**31 - 1, 4)]
)
def test_a_count_that_cannot_be_is_no_batch(count: int, codec: int) -> None:
    log = claiming(count, codec)
    with pytest.raises(CorruptBatch, match=f"{count} records in 71 bytes"):
        list(parse(memoryview(log), 0, len(log)))


@pytest.mark.parametrize(("count", "codec"), [(1, 0), (MOST_RECORDS, 4)])
def test_a_count_that_may_be_costs_nothing_to_parse(count: int, codec: int) -> None:
    log = claiming(count, codec)
    with at_most(1):
        [batch] = parse(memoryview(log), 0, len(log))
    assert batch.count == count
    with at_most(4), pytest.raises(CorruptBatch):
        index(memoryview(log), [batch])


def test_plain_records_of_append_time_and_with_what_they_must_not_have() -> None:
    buffer, batch = only(bomb(0, 10))
    stamped = batch._replace(attributes=LOG_APPEND_TIME, max_timestamp=77)
    assert [each.timestamp for each in plain_records(buffer, stamped)] == [77]
    log = bytearray(bomb(0, 10)) + b"\0"  # a byte too many after the records
    struct.pack_into(">i", log, 8, len(log) - 12)
    struct.pack_into(">I", log, 17, crc32c.crc32c(bytes(log[21:])))
    with pytest.raises(CorruptBatch, match="do not end where"):
        list(plain_records(*only(bytes(log))))
    assert len(log) > HEADER_SIZE

"""Batches parsed, restamped, indexed and written anew: against kafka-python's own encoder and decoder, and garbage."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from airmirror.errors import AirmirrorError
from airmirror.wire.batch import Compression, CorruptBatch, UnknownMessageFormat
from airmirror.wire.batches import HEADER_SIZE, build, next_sequence, parse, restamp
from airmirror.wire.records import first_difference, index
from airmirror.wire.transcode import dense_batches
from support import hostile, intakes
from support.examples import examples
from support.topics import Record

texts = st.one_of(st.none(), st.binary(max_size=300))
headers = st.lists(st.tuples(st.text(max_size=10), texts), max_size=4)
timestamps = st.one_of(st.integers(0, 2**41), st.sampled_from(hostile.TIMES), st.integers(-(2**63), 2**63 - 1))
records = st.lists(st.tuples(timestamps, texts, texts, headers), min_size=1, max_size=30)
Rows = list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]


def encode(rows: Rows, base: int = 0, codec: int = 0) -> bytearray:
    records = [Record(value, key, tuple(its_headers), time) for time, key, value, its_headers in rows]
    return intakes.at(base, hostile.batch(records, list(hostile.CODECS)[codec]))


def decode(batch: bytes) -> Rows:
    return [(hostile.wrapped(r.timestamp), r.key, r.value, list(r.headers)) for r in DefaultRecordBatch(batch)]


def test_a_record_over_the_limit_comes_alone_whatever_small_ones_follow() -> None:
    """A small one has room in what is kept for the large one's numbers: both together were tried for ever."""
    log = encode([(0, b"large", b"x" * 9000, []), *((0, None, b"", []) for _ in range(5))], 0, 0)
    source = index(memoryview(log), list(parse(memoryview(log), 0, len(log))))
    found = [dense.offsets.tolist() for dense in islice(dense_batches(source, Compression(0), 5000), 6)]
    assert found == [[0], [1, 2, 3, 4, 5]]


@given(st.lists(records, min_size=1, max_size=5), st.integers(0, 4), st.integers(200, 5000), st.data())
@examples(150)
def test_transcoded_batches_hold_the_same_records(
    groups: list[Rows], codec: int, most: int, data: st.DataObject
) -> None:
    log, offset = bytearray(), 0
    for group in groups:
        log += encode(group, offset, codec)
        offset += len(group)
    buffer = memoryview(log)
    batches = list(parse(buffer, 0, len(log)))
    first = data.draw(st.integers(0, offset - 1))
    end = data.draw(st.integers(first + 1, offset))
    expected = [row for group in groups for row in group][first:end]
    found: Rows = []
    source = index(buffer, batches, first, end)
    for dense in dense_batches(index(buffer, batches, first, end), Compression(batches[0].codec), most):
        batch = build(
            dense.payload,
            count=len(dense.offsets),
            base_timestamp=dense.base_timestamp,
            max_timestamp=dense.max_timestamp,
            codec=dense.codec,
            producer_id=7,
            producer_epoch=1,
            sequence=0,
            transactional=True,
        )
        assert len(batch) <= most or len(dense.offsets) == 1
        [header] = parse(memoryview(batch), 0, len(batch))
        assert header.is_dense and header.is_transactional
        again = index(memoryview(batch), [header])
        assert first_difference(source.slice(len(found), len(found) + len(again)), again) == -1
        assert sum(count for _, count in dense.runs()) == len(again)
        found += decode(bytes(batch))
    assert found == expected


@given(records, records)
@examples(100)
def test_a_difference_is_found_where_it_is(one: Rows, other: Rows) -> None:
    left, right = (
        index(memoryview(log), list(parse(memoryview(log), 0, len(log)))) for log in (encode(one), encode(other))
    )
    expected = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), -1)
    assert first_difference(left, right) == expected


def test_each_byte_of_a_record_is_compared() -> None:
    """Those after the last whole word of eight too: bodies of many lengths, each byte in turn another one."""
    for size in range(1, 18):
        rows: Rows = [(1, b"k", b"v" * size, []), (2, None, b"last", [])]
        log = encode(rows)
        whole = index(memoryview(log), list(parse(memoryview(log), 0, len(log))))
        start, end = int(whole.starts[0]), int(whole.ends[0])
        for at in range(start, end):
            other = bytearray(log)
            other[at] ^= 1
            assert first_difference(whole, replace(whole, data=np.frombuffer(other, np.uint8))) == 0, (size, end - at)
        assert first_difference(whole, replace(whole, data=np.frombuffer(bytearray(log), np.uint8))) == -1


def test_a_batch_is_restamped_and_its_records_stay() -> None:
    rows: Rows = [(1000 + n, b"k", b"v%d" % n, [("h", None)]) for n in range(10)]
    log = encode(rows, base=77)
    buffer = memoryview(log)
    [batch] = parse(buffer, 0, len(log))
    assert (batch.base_offset, batch.next_offset, batch.count, batch.is_transactional) == (77, 87, 10, False)
    payload = bytes(log[HEADER_SIZE:])
    restamp(buffer, batch, 5, 3, 41)
    [again] = parse(buffer, 0, len(log))  # the checksum is right
    assert (again.base_offset, again.producer_id, again.producer_epoch, again.base_sequence) == (0, 5, 3, 41)
    assert again.is_transactional and bytes(log[HEADER_SIZE:]) == payload and decode(bytes(log)) == rows


def test_sequences_wrap() -> None:
    assert next_sequence(2**31 - 1, 1) == 0
    assert next_sequence(2**31 - 3, 5) == 2


def test_a_batch_that_is_cut_off_is_left_out() -> None:
    log = encode([(1, None, b"v", [])]) + encode([(1, None, b"w", [])], base=1)
    assert [batch.base_offset for batch in parse(memoryview(log), 0, len(log) - 1)] == [0]


def test_unknown_formats_and_altered_bytes_are_errors() -> None:
    log = encode([(1, b"k", b"v" * 50, [])])
    log[-1] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        list(parse(memoryview(log), 0, len(log)))
    log[16] = 3
    with pytest.raises(UnknownMessageFormat, match="format 3 at offset 0"):
        list(parse(memoryview(log), 0, len(log)))


@given(st.binary(max_size=400), st.integers(0, 4))
@examples(1000)
def test_garbage_in_a_batch_is_an_error_and_nothing_worse(payload: bytes, codec: int) -> None:
    batch = build(payload, count=3, base_timestamp=0, max_timestamp=0, codec=codec)
    try:
        found = index(memoryview(batch), list(parse(memoryview(batch), 0, len(batch))))
        assert len(found) == 3
    except AirmirrorError:
        pass

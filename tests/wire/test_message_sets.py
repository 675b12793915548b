"""Messages of formats 0 and 1: found, checked and upgraded, against kafka-python's own encoder; and garbage."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airmirror.errors import AirmirrorError
from airmirror.wire.batch import Compression, CorruptBatch
from airmirror.wire.batches import build, parse
from airmirror.wire.records import Records, first_difference, index
from airmirror.wire.transcode import dense_batches
from support.examples import examples
from support.old_formats import Message, compressed, plain
from wire.test_records import decode, encode

keys = st.one_of(st.none(), st.binary(max_size=200))
messages = st.builds(Message, key=keys, value=keys, timestamp=st.integers(-1, 2**62))
groups = st.lists(messages, min_size=1, max_size=20)
Rows = list[tuple[int, int, bytes | None, bytes | None]]


def rows_of(records: Records) -> Rows:
    """(offset, timestamp, key, value) of each, read from the bodies by hand."""
    found = []
    for offset, timestamp, start, end in zip(
        records.offsets.tolist(), records.timestamps.tolist(), records.starts, records.ends, strict=True
    ):
        body = bytes(records.data[start:end])
        key, position = _bytes(body, 0)
        value, position = _bytes(body, position)
        assert body[position:] == b"\0", "no headers, and nothing after them"
        found.append((offset, timestamp, key, value))
    return found


def _bytes(body: bytes, position: int) -> tuple[bytes | None, int]:
    value = shift = 0
    while True:
        byte = body[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    length = (value >> 1) ^ -(value & 1)
    return (None, position) if length < 0 else (body[position : position + length], position + length)


def read(log: bytes | bytearray) -> Rows:
    buffer = memoryview(log)
    return rows_of(index(buffer, list(parse(buffer, 0, len(log)))))


def expected(group: list[Message], base: int, magic: int, append_time: int | None = None) -> Rows:
    return [
        (
            base + number,
            -1 if magic == 0 else append_time if append_time is not None else message.timestamp,
            message.key,
            message.value,
        )
        for number, message in enumerate(group)
    ]


@given(st.lists(st.tuples(groups, st.sampled_from([0, 1]), st.integers(0, 3)), min_size=1, max_size=5))
@examples(200)
def test_messages_of_both_formats_mixed(parts: list[tuple[list[Message], int, int]]) -> None:
    log, rows = b"", []
    for group, magic, codec in parts:
        base = len(rows)
        log += plain(group, magic, base) if codec == 0 else compressed(group, magic, codec, base)
        rows += expected(group, base, magic)
    assert read(log) == rows


@given(groups, groups, st.sampled_from([0, 1]), st.integers(0, 3), st.integers(0, 4))
@examples(100)
def test_messages_before_and_after_batches(
    old: list[Message], new: list[Message], magic: int, codec: int, new_codec: int
) -> None:
    """Every format in one response, in any order, as a topic's conversion and its return leave them."""
    first = plain(old, magic, 10) if codec == 0 else compressed(old, magic, codec, 10)
    middle = encode([(m.timestamp, m.key, m.value, []) for m in new], 10 + len(old), new_codec)
    after = 10 + len(old) + len(new)
    last = plain(old, magic, after) if codec == 0 else compressed(old, magic, codec, after)
    rows = expected(old, 10, magic) + expected(new, 10 + len(old), 2) + expected(old, after, magic)
    assert read(first + middle + last) == rows


@given(groups, st.integers(1, 3), st.integers(0, 2**62))
@examples(50)
def test_log_append_time_of_a_compressed_message_is_every_message_s(
    group: list[Message], codec: int, time: int
) -> None:
    assert read(compressed(group, 1, codec, 5, append_time=time)) == expected(group, 5, 1, time)


@given(groups, st.sampled_from([0, 1]), st.integers(1, 3), st.data())
@examples(100)
def test_holes_that_compaction_left(group: list[Message], magic: int, codec: int, data: st.DataObject) -> None:
    kept = sorted(data.draw(st.sets(st.integers(0, len(group) - 1), min_size=1)))
    rows = [row for row in expected(group, 100, magic) if row[0] - 100 in kept]
    assert read(compressed(group, magic, codec, 100, kept=kept)) == rows
    log = b"".join(plain([group[number]], magic, 100 + number) for number in kept)
    assert read(log) == rows
    buffer = memoryview(log)
    assert sum(batch.count for batch in parse(buffer, 0, len(log))) == len(kept)


@given(groups, st.sampled_from([0, 1]), st.integers(0, 3), st.integers(200, 5000), st.data())
@examples(100)
def test_transcoded_messages_hold_the_same_records(
    group: list[Message], magic: int, codec: int, most: int, data: st.DataObject
) -> None:
    log = plain(group, magic, 0) if codec == 0 else compressed(group, magic, codec, 0)
    first = data.draw(st.integers(0, len(group) - 1))
    end = data.draw(st.integers(first + 1, len(group)))
    buffer = memoryview(log)
    batches = list(parse(buffer, 0, len(log)))
    found = []
    for dense in dense_batches(index(buffer, batches, first, end), Compression(batches[0].codec), most):
        batch = build(
            dense.payload,
            count=len(dense.offsets),
            base_timestamp=dense.base_timestamp,
            max_timestamp=dense.max_timestamp,
            codec=dense.codec,
        )
        [header] = parse(memoryview(batch), 0, len(batch))
        assert first_difference(dense.records, index(memoryview(batch), [header])) == -1
        found += decode(bytes(batch))
    # kafka-python tells a time of -1 as it is in the batch
    wanted = [(time, key, value, []) for _, time, key, value in expected(group, 0, magic)[first:end]]
    assert found == wanted


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_a_message_that_is_cut_off_is_left_out(magic: int, codec: int) -> None:
    group = [Message(b"k", b"v" * 30, 5)] * 3
    one = plain(group, magic, 0) if codec == 0 else compressed(group, magic, codec, 0)
    log = one + compressed(group, magic, 1, 3)
    rows = expected(group, 0, magic)
    for cut in range(len(one), len(log)):
        assert read(log[:cut]) == rows


def test_an_offset_of_0_on_a_compressed_message() -> None:
    """Some producers of librdkafka left it; the relative offsets are the absolute ones then."""
    group = [Message(b"k", b"v", 5)] * 3
    log = bytearray(compressed(group, 1, 1, 0))
    struct.pack_into(">q", log, 0, 0)
    assert read(log) == expected(group, 0, 1)


def test_altered_messages_are_errors() -> None:
    group = [Message(b"key", b"v" * 50, 5)] * 3
    for log in (plain(group, 1, 0), compressed(group, 0, 2, 0)):
        altered = bytearray(log)
        altered[-1] ^= 1
        with pytest.raises(CorruptBatch, match="checksum"):
            read(altered)


def test_a_compressed_message_of_nonsense_is_an_error() -> None:
    with pytest.raises(CorruptBatch, match="not messages of its own format"):
        read(compressed([], 1, 1, 0, inside=compressed([Message(b"k", b"v", 1)], 1, 1, 0)))
    altered = bytearray(compressed([Message(b"k", b"v", 1)] * 3, 1, 1, 0))
    struct.pack_into(">q", altered, 0, 1)  # below the offset of its last message
    with pytest.raises(CorruptBatch, match="below that of its last message"):
        read(altered)
    with pytest.raises(CorruptBatch, match="without messages"):
        read(_with_checksum(plain([Message(b"k", None, 1)], 1, 0), attributes=1))
    with pytest.raises(CorruptBatch, match="can't be decompressed"):
        read(_with_checksum(plain([Message(b"k", b"nonsense", 1)], 1, 0), attributes=1))
    with pytest.raises(CorruptBatch, match="not messages of its own format"):
        read(_with_checksum(compressed([Message(b"k", b"v", 1)], 1, 1, 0), magic=0))


@given(st.binary(max_size=300), st.sampled_from([0, 1]), st.integers(0, 7), st.booleans())
@examples(1000)
def test_garbage_with_a_right_checksum_is_an_error_and_nothing_worse(
    body: bytes, magic: int, codec: int, append_time: bool
) -> None:
    attributes = codec | (8 if append_time else 0)
    checked = struct.pack(">BB", magic, attributes) + body
    log = struct.pack(">qiI", 7, len(checked) + 4, zlib.crc32(checked)) + checked
    try:
        assert all(offset >= 0 for offset, *_ in read(log))
    except AirmirrorError as error:
        assert isinstance(error, CorruptBatch)


@given(groups, st.sampled_from([0, 1]), st.binary(min_size=1, max_size=200))
@examples(300)
def test_garbage_in_a_compressed_message(group: list[Message], magic: int, garbage: bytes) -> None:
    whole = plain(group, magic, 0)
    inside = whole[: len(garbage) % len(whole)] + garbage
    log = compressed([], magic, 2, 9, inside=inside)
    try:
        read(log)
    except AirmirrorError as error:
        assert isinstance(error, CorruptBatch)


def _with_checksum(log: bytes, *, attributes: int | None = None, magic: int | None = None) -> bytes:
    changed = bytearray(log)
    if attributes is not None:
        changed[17] = attributes
    if magic is not None:
        # format 0 has no timestamp: what was one becomes the key's and value's lengths
        changed[16:] = struct.pack(">BB", magic, changed[17]) + changed[26:]
        struct.pack_into(">i", changed, 8, len(changed) - 12)
    struct.pack_into(">I", changed, 12, zlib.crc32(changed[16:]))
    return bytes(changed)

"""Every decoder of bytes in ``airmirror.wire``, as a function of one byte string, and examples that it can decode."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

import crc32c
import lz4.frame
from backports import zstd
from kafka.codec import gzip_encode, lz4_encode_old_kafka, snappy_encode
from kafka.record.default_records import DefaultRecordBatchBuilder

from airmirror.wire import checkpoints, mappings, mirrormaker, requests
from airmirror.wire.batches import build, control_type, parse
from airmirror.wire.codecs import LZ4_OF_FORMAT_0, compress, decompress, decompress_into
from airmirror.wire.headers import with_headers
from airmirror.wire.plain import plain_records
from airmirror.wire.primitives import string, unsigned_varint
from airmirror.wire.records import index
from airmirror.wire.small import take_run
from support.old_formats import Message, compressed, plain

TOPIC_ID = UUID(int=7)
TOPICS = {TOPIC_ID: "orders"}


@dataclass(frozen=True)
class Decoder:
    """``decode`` must return, or raise an error of our own. ``mend`` sets right the checksums, so that more is reached."""

    name: str
    decode: Callable[[bytes], object]
    examples: Callable[[], Iterator[bytes]]
    mend: Callable[[bytearray], None] = lambda data: None

    def __str__(self) -> str:
        return self.name


def zigzag(number: int) -> bytes:
    """A varint of 64 bits."""
    left, out = ((number << 1) ^ (number >> 63)) & (2**64 - 1), b""
    while left >= 128:
        left, out = left >> 7, out + bytes([left & 127 | 128])
    return out + bytes([left])


def _log(data: bytes) -> object:
    """Everything that is read of a log; what lies behind the bytes given must not count."""
    found = []
    for behind in (b"\0" * 64, b"\xff" * 64):
        buffer = memoryview(b"before" + data + behind)
        rows: list[object] = []
        try:
            for batch in parse(buffer, 6, 6 + len(data)):
                assert batch.position >= 6 and batch.position + batch.size <= 6 + len(data)
                if batch.is_control and batch.count and not batch.is_message_set:
                    rows.append(control_type(buffer, batch))
                records = index(buffer, [batch])
                assert len(records) <= batch.count
                rows += zip(records.offsets.tolist(), records.timestamps.tolist(), strict=True)
                rows += [bytes(records.data[a:b]) for a, b in zip(records.starts, records.ends, strict=True)]
        except Exception as error:
            found.append((rows, type(error), str(error)))
            raised: Exception | None = error
        else:
            found.append((rows, None, ""))
            raised = None
    assert found[0] == found[1], "what lies behind the bytes counts"
    if raised is not None:
        raise raised
    return found[0]


def _runs(data: bytes) -> object:
    """Runs of small batches: what the compiled loop finds is what ``parse`` finds, from one to the next."""
    buffer, position, found = memoryview(data), 0, []
    while position < len(data):
        run = take_run(
            buffer, position, len(data), offset=0, last=1 << 62, leader_epoch=-1, may_lack=True, aborted=None
        )
        ours, offset = [], 0
        for batch in parse(buffer, position, run.stop):
            ours += [batch] * (batch.next_offset > offset and batch.count > 0 and not batch.is_control)
            offset = max(offset, batch.next_offset)
        assert offset == run.offset
        assert list(run.batches()) == ours, "another run than parse finds"
        found += ours
        after = next(parse(buffer, run.stop, len(data)), None)
        if after is None:
            break
        position = after.position + after.size
    return found


def _plain(data: bytes) -> object:
    """The records of small topics: what both decoders make of a log is equal."""
    buffer = memoryview(data)
    rows = []
    for batch in parse(buffer, 0, len(data)):
        if not batch.is_message_set:
            rows += [(each.offset, each.timestamp, each.key, each.value) for each in plain_records(buffer, batch)]
            records = index(buffer, [batch])
            assert [row[:2] for row in rows[len(rows) - len(records) :]] == list(
                zip(records.offsets.tolist(), records.timestamps.tolist(), strict=True)
            )
    return rows


def _mend_log(data: bytearray) -> None:
    position = 0
    while position + 17 <= len(data):
        size = 12 + struct.unpack_from(">i", data, position + 8)[0]
        if size < 17 or position + size > len(data):
            size = len(data) - position
            struct.pack_into(">i", data, position + 8, size - 12)
        if data[position + 16] >= 2:
            data[position + 16] = 2
            struct.pack_into(
                ">I", data, position + 17, crc32c.crc32c(bytes(data[position + 21 : position + size]))
            ) if (size >= 21) else None
        else:
            struct.pack_into(">I", data, position + 12, zlib.crc32(data[position + 16 : position + size]))
        position += size


def _logs() -> Iterator[bytes]:
    """Many batches at once."""
    every = list(_batches())
    yield b"".join(every)
    yield b"".join(one for one in every if not one[22] & 7) * 3


def _batches() -> Iterator[bytes]:
    for codec in range(5):
        for transactional in (False, True):
            builder = DefaultRecordBatchBuilder(
                magic=2,
                compression_type=codec,
                is_transactional=transactional,
                producer_id=5,
                producer_epoch=1,
                base_sequence=3,
                batch_size=1 << 30,
            )
            for number in range(6):
                key = None if number % 2 else b"k%d" % number * 9
                builder.append(number, 10**12 + number, key, b"value" * number, [("h", None), ("größe", b"v")])
            batch = bytes(builder.build())
            yield batch
            yield batch + batch
    control = bytes.fromhex("20 00 00 00 08 00 00 00 01 0c 00 00 00 00 00 00 00")  # a commit marker
    batch_ = build(control, count=1, base_timestamp=5, max_timestamp=5, transactional=True)
    struct.pack_into(">H", batch_, 21, 0x30)
    _mend_log(batch_)
    yield bytes(batch_)
    empty = build(b"", count=1, base_timestamp=5, max_timestamp=5)
    struct.pack_into(">i", empty, 57, 0)
    _mend_log(empty)
    yield bytes(empty)


def _messages() -> Iterator[bytes]:
    group = [Message(b"key", b"value" * 9, 10**12), Message(None, b"v", 0), Message(b"k", None, -1)]
    for magic in (0, 1):
        yield plain(group, magic, 3)
        for codec in (1, 2, 3):
            yield compressed(group, magic, codec, 3)
    yield compressed(group, 1, 2, 3, append_time=77)
    yield plain(group, 0, 0) + plain(group, 1, 3)


def _inside(data: bytes) -> object:
    """Messages inside a compressed one; the first two bytes choose format and codec."""
    if len(data) < 2:
        return None
    magic, codec = data[0] & 1, data[1] % 3 + 1
    return _log(compressed([], magic, codec, 1000, inside=data[2:]))


def _mend_inside(data: bytearray) -> None:
    inside = data[2:]
    position = 0
    while position + 17 <= len(inside):
        inside[position + 16] = data[0] & 1
        size = 12 + struct.unpack_from(">i", inside, position + 8)[0]
        if size < 17 or position + size > len(inside):
            return
        struct.pack_into(">I", inside, position + 12, zlib.crc32(inside[position + 16 : position + size]))
        position += size
    data[2:] = inside


def _insides() -> Iterator[bytes]:
    group = [Message(b"key", b"value" * 9, 10**12), Message(None, b"v", 0), Message(b"k", None, -1)]
    for magic in (0, 1):
        for codec in range(3):
            yield bytes((magic, codec)) + plain(group, magic, 0)


def _records(data: bytes) -> object:
    """Records of format 2 without compression; the first four bytes are attributes, count and last offset delta."""
    if len(data) < 4:
        return None
    batch = build(
        compress(data[0] % 5, data[4:]), count=1, base_timestamp=10**12, max_timestamp=10**12, codec=data[0] % 5
    )
    struct.pack_into(">H", batch, 21, data[0] % 5 | (data[1] & 0x78))
    struct.pack_into(">i", batch, 57, data[2])
    struct.pack_into(">i", batch, 23, max(data[2] - 1, 0) + data[3])
    _mend_log(batch)
    return _log(bytes(batch))


def _record_examples() -> Iterator[bytes]:
    for codec in range(5):
        builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 30)
        for number in range(9):
            builder.append(number, 10**12 + number * 1000, b"k%d" % number, b"v" * 9, [("h", b"1")])
        yield bytes((codec, 0, 9, 0)) + bytes(builder.build())[61:]


_PLAIN = b"".join(b"record %d of many, " % number for number in range(50)) + bytes(range(256))


def _codec(number: int, *examples: bytes) -> Decoder:
    def decode(data: bytes) -> object:
        found = bytes(decompress(number, memoryview(data)))
        out = bytearray(b"before")
        decompress_into(out, number, memoryview(data), len(found))
        assert out == b"before" + found
        return found

    return Decoder(f"codec-{number}", decode, lambda: iter(examples))


def _fetch(version: int) -> Decoder:
    def examples() -> Iterator[bytes]:
        topic = TOPIC_ID.bytes if version >= 13 else b"\x07orders"
        head = struct.pack(">ib i hi", 9, 0, 0, 0, 0)
        part = struct.pack(">ihqqq", 0, 0, 10, 10, 0)
        batch = next(_batches())
        tail = struct.pack(">i", -1) + unsigned_varint(len(batch) + 1) + batch
        diverging = b"\1\0\x0d" + struct.pack(">iqb", 5, 77, 0)
        yield head + b"\2" + topic + b"\2" + part + b"\1" + tail + b"\0\0\0"
        yield (
            head
            + b"\2"
            + topic
            + b"\3"
            + (part + b"\3" + struct.pack(">qqb", 5, 6, 0) * 2 + tail + b"\0") * 2
            + b"\0\0"
        )
        yield head + b"\2" + topic + b"\2" + part + b"\0" + struct.pack(">i", -1) + b"\0" + diverging + b"\0\0"

    return Decoder(f"fetch-{version}", lambda data: requests.decode_fetch(version, memoryview(data), TOPICS), examples)


def _produce(version: int) -> Decoder:
    def examples() -> Iterator[bytes]:
        topic = TOPIC_ID.bytes if version >= 13 else b"\x07orders"
        part = struct.pack(">ihqqq", 0, 0, 10, -1, 0)
        yield b"\0\0\0\1\0" + b"\2" + topic + b"\2" + part + b"\1\0\0" + b"\0" + b"\0\0\0\0\0"
        errors = b"\3" + (struct.pack(">i", 3) + b"\6wrong" + b"\0") * 2
        yield b"\0\0\0\1\0" + b"\2" + topic + b"\2" + part + errors + b"\4bad" + b"\0" + b"\0" + b"\0\0\0\0\0"

    return Decoder(
        f"produce-{version}", lambda data: requests.decode_produce(version, memoryview(data), TOPICS), examples
    )


def _two(function: Callable[[bytes, bytes], object]) -> Callable[[bytes], object]:
    """A decoder of key and value; the first byte is the key's size."""
    return lambda data: function(data[1 : 1 + data[0]], data[1 + data[0] :]) if data else None


def _pair(key: bytes, value: bytes) -> bytes:
    return bytes((len(key),)) + key + value


def _mapping_records() -> Iterator[bytes]:
    record = mappings.MappingRecord(
        source_topic_id=TOPIC_ID,
        topic="orders",
        partition=3,
        source_start=100,
        window="window",
        slot=1,
        time_ms=10**12,
        source_end=200,
        target_topic_id=UUID(int=8),
        remote_topic="east.orders",
        target_start=50,
        target_end=120,
        copied=70,
        control=10,
        aborted=10,
        holes=10,
        lost=0,
        size=5000,
        max_timestamp=10**12,
        leader_epoch=4,
        digest=b"d" * 16,
        ranges=(mappings.MappedRange(100, 50, 30), mappings.MappedRange(140, 81, 40)),
    )
    for each in (
        mappings.Lease(
            window="window",
            event=mappings.LeaseEvent.TAKEN,
            owner="host:1",
            time_ms=10**12,
            duration_ms=30_000,
            slots=4,
        ),
        record,
        mappings.Verified(
            topic="orders",
            partition=3,
            source_topic_id=TOPIC_ID,
            offset=199,
            target_end=120,
            window="window",
            time_ms=10**12,
            seen=4,
        ),
        mappings.Hold(
            topic="orders", partition=3, offset=100, reason="it differs", window="window", by="gate", time_ms=10**12
        ),
        mappings.FlowIdentity("east", "west", "id-1", "id-2", 10**12),
    ):
        yield _pair(each.encode_key(), each.encode_value())


def _source_offsets() -> Iterator[bytes]:
    yield _pair(mirrormaker.source_offset_key("east", "orders", 3), mirrormaker.source_offset_value(77))
    yield _pair(b'["MirrorHeartbeatConnector",{"a":[1,2.5,null,true]}]', b'{"offset":1e5}')


def _offset_syncs() -> Iterator[bytes]:
    sync = mirrormaker.OffsetSync("orders", 3, 77, 99)
    yield _pair(sync.encode_key(), sync.encode_value())
    yield _pair(string("") + b"\0\0\0\0", struct.pack(">qq", -1, -1))


def _checkpoints() -> Iterator[bytes]:
    for metadata in ("", "größe" * 5):
        each = checkpoints.Checkpoint(
            group="group", topic="east.orders", partition=3, upstream=77, downstream=99, metadata=metadata
        )
        yield _pair(each.encode_key(), each.encode_value())


def _checkpoint_keys() -> Iterator[bytes]:
    for group in ("group", "größe" * 5):
        yield checkpoints.Checkpoint(
            group=group, topic="east.orders", partition=3, upstream=77, downstream=99, metadata=""
        ).encode_key()


def _heartbeats() -> Iterator[bytes]:
    each = mirrormaker.Heartbeat("east", "west", 10**12)
    yield _pair(each.encode_key(), each.encode_value())


def _bodies() -> Iterator[bytes]:
    for key, value in ((b"key", b"value" * 30), (None, None), (b"", b"v")):
        builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 30)
        builder.append(0, 10**12, key, value, [("h", b"1"), ("h", None)])
        batch = memoryview(bytes(builder.build()))
        [header] = parse(batch, 0, len(batch))
        records = index(batch, [header])
        yield bytes(records.data[records.starts[0] : records.ends[0]])


DECODERS = (
    Decoder("batches", _log, _batches, _mend_log),
    Decoder("batches-as-they-are", _log, _batches),
    Decoder("runs-of-batches", _runs, _logs, _mend_log),
    Decoder("plain-records", _plain, _batches, _mend_log),
    Decoder("messages", _log, _messages, _mend_log),
    Decoder("messages-inside", _inside, _insides, _mend_inside),
    Decoder("records", _records, _record_examples),
    _codec(1, gzip_encode(_PLAIN), gzip_encode(b"")),
    _codec(
        2,
        snappy_encode(_PLAIN),
        snappy_encode(_PLAIN, xerial_compatible=False),
        snappy_encode(_PLAIN, xerial_blocksize=99),
    ),
    _codec(3, lz4.frame.compress(_PLAIN), lz4.frame.compress(_PLAIN, content_checksum=True, store_size=False)),
    _codec(4, zstd.compress(_PLAIN), zstd.compress(_PLAIN, options={zstd.CompressionParameter.content_size_flag: 0})),
    Decoder(
        "codec-3-of-format-0",
        lambda data: decompress(LZ4_OF_FORMAT_0, memoryview(data)),
        lambda: iter((lz4_encode_old_kafka(_PLAIN),)),
    ),
    _fetch(12),
    _fetch(13),
    _produce(9),
    _produce(13),
    Decoder("mappings", _two(mappings.decode), _mapping_records),
    Decoder("source-offsets", _two(mirrormaker.decode_source_offset), _source_offsets),
    Decoder("offset-syncs", _two(mirrormaker.OffsetSync.decode), _offset_syncs),
    Decoder("checkpoints", _two(checkpoints.Checkpoint.decode), _checkpoints),
    Decoder("checkpoint-keys", checkpoints.Checkpoint.decode_key, _checkpoint_keys),
    Decoder("heartbeats", _two(mirrormaker.Heartbeat.decode), _heartbeats),
    Decoder("headers", lambda data: with_headers(data, [("name", b"value")]), _bodies),
)

"""Runs of small batches: what the compiled loop makes of a buffer is what is made of it batch by batch, errors too."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import crc32c
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch
from numba import njit

from airmirror.native import checksum
from airmirror.slot.errors import PartitionError, UnexpectedHole
from airmirror.slot.intake import Intake
from airmirror.wire import merging
from airmirror.wire.aborted import AbortedFilter
from airmirror.wire.batch import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, Batch, Compression
from airmirror.wire.batches import parse
from airmirror.wire.records import records_of
from airmirror.wire.requests import AbortedTransaction
from airmirror.wire.small import _tables, take_run
from airmirror.wire.transcode import dense_batches
from support.hostile import NOON, batch
from support.intakes import intake, take
from support.old_formats import Message, compressed, plain
from support.topics import Record

CODECS = ("none", "none", "none", "lz4", "zstd", "gzip")
PRODUCERS = (1, 2, 3)
QUICKLY = (Phase.explicit, Phase.reuse, Phase.generate)  # a log that fails takes minutes to shrink
HEADERS = ((), (("h", b"1"), ("h", None), ("größe", b"")))


@dataclass(frozen=True)
class Log:
    """The bytes of an answer, the aborted transactions that it names, and the offset after it."""

    data: bytes = field(repr=False)
    aborted: tuple[AbortedTransaction, ...]
    end: int
    batches: int


def restamped(one: bytearray, offset: int, *, flags: int = 0, producer: int = -1, epoch: int = 0, **more: int) -> bytes:
    """A batch at another offset, with attributes and header fields as they are given."""
    attributes = struct.unpack_from(">H", one, 21)[0] | flags
    struct.pack_into(">qiiB", one, 0, offset, len(one) - 12, epoch, 2)
    struct.pack_into(">H", one, 21, attributes)
    struct.pack_into(">q", one, 43, producer)
    if "last" in more:
        struct.pack_into(">i", one, 23, more["last"])
    if "count" in more:
        struct.pack_into(">i", one, 57, more["count"])
    struct.pack_into(">I", one, 17, crc32c.crc32c(bytes(one[21:])))
    return bytes(one)


def records(draw: Any, count: int) -> list[Record]:
    values = st.sampled_from([None, b"", b"value", bytes(200)])
    return [
        Record(draw(values), draw(values), draw(st.sampled_from(HEADERS)), NOON + draw(times)) for _ in range(count)
    ]


times = st.integers(-1000, 1000)


def marker(kind: int) -> bytearray:
    return batch([Record(struct.pack(">hi", 0, 0), struct.pack(">hh", 0, kind), (), NOON)])


def one_batch(draw: Any, offset: int, compacted: bool, codec: str) -> tuple[bytes, int]:
    """A batch of any kind, and how many offsets it takes."""
    producer = draw(st.sampled_from(PRODUCERS))
    flags = draw(st.sampled_from([0, 0, TRANSACTIONAL]))
    epoch = draw(st.integers(0, 5))
    kinds = ["data"] * 8 + ["marker", "old", "large"] + (["empty", "sparse"] if compacted else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "marker":
        of = draw(st.sampled_from([0, 1]))
        count = draw(st.sampled_from([1, 1, 1, 0])) if compacted else 1
        flags = TRANSACTIONAL | CONTROL
        return restamped(marker(of), offset, flags=flags, producer=producer, epoch=epoch, count=count), 1
    if kind == "old":
        messages = [Message(b"k", b"v%d" % number, NOON) for number in range(draw(st.integers(1, 3)))]
        if draw(st.booleans()):
            return compressed(messages, 1, 1, offset), len(messages)
        return plain(messages, draw(st.sampled_from([0, 1])), offset), len(messages)
    if kind == "large":
        return restamped(
            batch([Record(bytes(17_000), None, (), NOON)]), offset, flags=flags, producer=producer, epoch=epoch
        ), 1
    if kind == "empty":
        one = restamped(batch([])[:61], offset, flags=flags, producer=producer, epoch=epoch, last=2, count=0)
        return one, 3
    count = draw(st.integers(1, 4))
    offsets = [2 * number for number in range(count)] if kind == "sparse" else list(range(count))
    flags |= draw(st.sampled_from([0, 0, LOG_APPEND_TIME]))
    one = batch(records(draw, count), codec, offsets=offsets)
    return restamped(one, offset, flags=flags, producer=producer, epoch=epoch), offsets[-1] + 1


def damaged(draw: Any, one: bytes) -> bytes:
    """A batch of format 2 that nobody must take."""
    other = bytearray(one)
    what = draw(st.sampled_from(["checksum", "length", "count", "magic", "offset", "cut"]))
    if what == "checksum":
        other[draw(st.integers(17, 60))] ^= 1 << draw(st.integers(0, 7))
        return bytes(other)
    if what == "length":
        struct.pack_into(">i", other, 8, draw(st.sampled_from([-1, 0, 48, len(one) - 13, 1 << 30])))
        return bytes(other)
    if what == "count":
        return restamped(other, 0, count=draw(st.sampled_from([-1, 5000, 2**31 - 1])))
    if what == "magic":
        other[16] = 3
        return bytes(other)
    if what == "offset":
        return restamped(other, draw(st.sampled_from([-1, 2**63 - 1, 2**62 + 1])))
    return bytes(other[: draw(st.integers(1, len(one) - 1))])


@st.composite
def logs(draw: Any, compacted: bool) -> Log:
    parts: list[bytes] = []
    offset = draw(st.integers(0, 5))
    codec = "none"
    fault = draw(st.integers(0, 60))
    aborted = []
    for number in range(draw(st.integers(1, 25))):
        if draw(st.integers(0, 5)) == 0:
            codec = draw(st.sampled_from(CODECS))
        if draw(st.integers(0, 6)) == 0:
            aborted.append(AbortedTransaction(draw(st.sampled_from(PRODUCERS)), offset))
        if compacted and draw(st.integers(0, 5)) == 0:
            offset += draw(st.integers(1, 4))
        one, offsets = one_batch(draw, offset, compacted, codec)
        if number == fault and one[16] == 2:
            one = damaged(draw, one)
        parts.append(one)
        offset += offsets
        if draw(st.integers(0, 40)) == 0:
            offset += 1  # a hole
    return Log(b"".join(parts), tuple(draw(st.permutations(aborted))), offset, len(parts))


def sent(outgoing: list[Any]) -> list[tuple[object, ...]]:
    """Every record that goes to the target with its source offset, decoded with kafka-python."""
    rows: list[tuple[object, ...]] = []
    for each in outgoing:
        data = b"".join(map(bytes, each.buffers))
        offsets = [first + number for first, count in each.on_written.__self__.runs for number in range(count)]
        found = list(DefaultRecordBatch(data))
        assert [record.offset for record in found] == list(range(len(offsets)))
        rows += [
            (offset, record.timestamp, record.key, record.value, tuple(record.headers))
            for offset, record in zip(offsets, found, strict=True)
        ]
    return rows


@contextmanager
def rules(how: str) -> Iterator[None]:
    """Everything small is merged, by the compiled loop or (``how`` is "one by one") without it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "MERGED_FROM", -1)
        if how == "one by one":
            patch.setattr(Intake, "_take_run", lambda *_: None)
        yield


def told(log: Log, how: str, *, start: int, end: int, compacted: bool) -> tuple[object, ...]:
    """The outcome of one answer: accounts and records, or the error and where it is."""
    with rules(how):
        taker, put_in = intake(end, start=start, compacted=compacted)
        try:
            take(taker, log.data, aborted=log.aborted)
        except PartitionError as error:
            return type(error), str(error), error.first_bad
    account = taker.account
    counts = (account.control, account.aborted, account.holes, account.lost, account.end, account.leader_epoch)
    assert account.end == taker.position and taker.leader_epoch == account.leader_epoch
    # Not min_timestamp: it is of the first records of the batches that are written, and these are put together in other ways.
    return counts, account.max_timestamp, sent(put_in)


@pytest.mark.parametrize("compacted", [False, True])
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=QUICKLY)
@given(data=st.data())
def test_the_same_as_batch_by_batch(compacted: bool, data: st.DataObject) -> None:
    log = data.draw(logs(compacted))
    start = data.draw(st.integers(0, max(0, log.end - 1)))
    end = data.draw(st.one_of(st.just(log.end), st.integers(start + 1, log.end + 3)))
    one, other = (told(log, how, start=start, end=end, compacted=compacted) for how in ("one by one", "compiled"))
    assert one == other


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=QUICKLY)
@given(data=st.data())
def test_a_run_has_the_headers_that_parse_finds(data: st.DataObject) -> None:
    """And it resumes after itself, so that runs and what lies between them are the whole buffer."""
    log = data.draw(logs(True))
    buffer, position = memoryview(b"before" + log.data + b"\xff" * 64), 6
    one, other = AbortedFilter(), AbortedFilter()
    end = 6 + len(log.data)
    one.begin(log.aborted, buffer, 6, end, 0)
    other.begin(log.aborted, buffer, 6, end, 0)
    while position < end:
        run = take_run(buffer, position, end, offset=0, last=1 << 62, leader_epoch=-1, may_lack=True, aborted=one)
        expected: list[Batch] = []
        stop = position
        for found in parse(buffer, position, run.stop):
            if not other.is_aborted(buffer, found) and not found.is_control and found.count:
                expected.append(found)
            stop = found.position + found.size
        assert list(run.batches()) == expected and stop == run.stop <= end
        try:
            next_one = next(parse(buffer, run.stop, end), None)
        except Exception:
            return
        if next_one is None:
            return
        assert one.is_aborted(buffer, next_one) == other.is_aborted(buffer, next_one) and one == other
        position = next_one.position + next_one.size


def test_a_run_is_what_small_batches_of_one_codec_are_taken_as() -> None:
    """The comparisons above compare something: hundreds of batches in one call, with markers and aborted ones between."""
    parts = []
    for number in range(300):
        if number % 3 == 2:
            kind = marker(number % 2)
            parts.append(restamped(kind, number, flags=TRANSACTIONAL | CONTROL, producer=number % 4 // 2, epoch=7))
        else:
            one = batch([Record(b"v%d" % number, None, (), NOON)])
            parts.append(restamped(one, number, flags=TRANSACTIONAL, producer=number % 4 // 2, epoch=7))
    log = b"".join(parts)
    aborted = AbortedFilter()
    aborted.begin([AbortedTransaction(0, 100)], memoryview(log), 0, len(log), 0)
    run = take_run(memoryview(log), 0, len(log), offset=0, last=300, leader_epoch=-1, may_lack=False, aborted=aborted)
    assert (run.stop, run.offset, run.leader_epoch, run.holes) == (len(log), 300, 7, 0)
    assert run.control == 100 and run.aborted > 0 and len(run) + run.aborted == 200


@pytest.mark.parametrize("may_lack", [True, False])
def test_a_run_goes_over_holes_where_the_log_may_have_them(may_lack: bool) -> None:
    log = [restamped(batch([Record(b"v%d" % n, None, (), NOON)]), 2 * n) for n in range(5)]
    data = memoryview(b"".join(log))
    run = take_run(data, 0, len(data), offset=0, last=9, leader_epoch=-1, may_lack=may_lack, aborted=None)
    assert (run.stop, run.offset, run.holes) == ((len(data), 9, 4) if may_lack else (len(log[0]), 1, 0))
    with rules("in runs"):
        taker, _ = intake(9, compacted=may_lack)
        if may_lack:
            take(taker, *log)
            assert taker.account.holes == 4 and taker.is_done
        else:
            with pytest.raises(UnexpectedHole) as caught:
                take(taker, *log)
            assert caught.value.first_bad == 1


def test_a_run_for_a_far_target_comes_out_as_one_batch() -> None:
    """One of a megabyte and a small rest would each take a place of the five requests in flight."""
    one = batch([Record(b"%0100d" % number, None, (), NOON) for number in range(1190)])
    log = memoryview(b"".join(restamped(bytearray(one), number * 1190) for number in range(32)))
    position, sizes = 0, []
    while position < len(log):
        run = take_run(
            log,
            position,
            len(log),
            offset=0,
            last=1 << 62,
            leader_epoch=-1,
            may_lack=True,
            aborted=None,
            below={0: 6 << 20},
            most=merging.FAR_RUN_BYTES,
        )
        records = records_of(log, run.table, 0, 1 << 62)
        dense = list(dense_batches(records, Compression(0), 1_048_588, merging.RUN_BYTES))
        assert [len(each.offsets) for each in dense] == [len(records)]
        sizes.append(len(run))
        position = run.stop
    assert sum(sizes) == 32 and set(sizes[:-1]) == {merging.FAR_RUN_BYTES // len(one)}


def test_checksums_of_processors_without_the_instruction() -> None:
    """All other tests compute them as this machine does."""
    loop = checksum.by_tables

    @njit
    def compute(data: Any, position: int, end: int, tables: Any) -> Any:
        return loop(data, position, end, tables)

    data = np.random.default_rng(7).integers(0, 256, 300).astype(np.uint8)
    for size in (0, 1, 7, 8, 9, 16, 255, 290):
        assert compute(data, 3, 3 + size, _tables()) == crc32c.crc32c(data[3 : 3 + size].tobytes())

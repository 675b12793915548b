"""Offset syncs, checkpoints and heartbeats: fixed bytes, round trips, garbage, and MirrorMaker 2's own Java classes."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airmirror.wire.checkpoints import Checkpoint
from airmirror.wire.mirrormaker import Heartbeat, OffsetSync
from airmirror.wire.primitives import MalformedRecord
from airmirror_local.jars import classpath
from airmirror_local.java import java_home
from support.examples import examples
from support.needs import javac

Mm2Record = OffsetSync | Checkpoint | Heartbeat
DECODERS = {OffsetSync: OffsetSync.decode, Checkpoint: Checkpoint.decode, Heartbeat: Heartbeat.decode}

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
offsets = st.integers(-(2**63), 2**63 - 1)
numbers = st.integers(0, 2**31 - 1)
records = st.one_of(
    st.builds(OffsetSync, texts, numbers, offsets, offsets),
    st.builds(Checkpoint, texts, texts, numbers, offsets, offsets, texts),
    st.builds(Heartbeat, texts, texts, offsets),
)


def decode(kind: type[Mm2Record], key: bytes, value: bytes) -> Mm2Record:
    return DECODERS[kind](key, value)


@pytest.mark.parametrize(
    ("record", "key", "value"),
    [
        (OffsetSync("t1", 3, 100, 200), "0002743100000003", "000000000000006400000000000000c8"),
        (
            Checkpoint("g1", "primary.t1", 3, 250, 201),
            "00026731000a7072696d6172792e743100000003",
            "000000000000000000fa00000000000000c90000",
        ),
        (
            Heartbeat("primary", "backup", 1_700_000_000_000),
            "00077072696d61727900066261636b7570",
            "00000000018bcfe56800",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_fixed_bytes(record: Mm2Record, key: str, value: str) -> None:
    assert (record.encode_key().hex(), record.encode_value().hex()) == (key, value)
    assert decode(type(record), record.encode_key(), record.encode_value()) == record


@given(records)
def test_round_trips(record: Mm2Record) -> None:
    assert decode(type(record), record.encode_key(), record.encode_value()) == record


@given(records, st.data())
@examples(500)
def test_what_is_cut_or_too_long_is_malformed(record: Mm2Record, data: st.DataObject) -> None:
    key, value = record.encode_key(), record.encode_value()
    for cut in (key[: data.draw(st.integers(0, len(key) - 1))], key + b"x"):
        with pytest.raises(MalformedRecord):
            decode(type(record), cut, value)
    for cut in (value[: data.draw(st.integers(0, len(value) - 1))], value + b"x"):
        with pytest.raises(MalformedRecord):
            decode(type(record), key, cut)


@given(st.binary(max_size=80), st.binary(max_size=80), st.sampled_from(list(DECODERS)))
@examples(1000)
def test_garbage_is_malformed_and_nothing_worse(key: bytes, value: bytes, kind: type[Mm2Record]) -> None:
    with contextlib.suppress(MalformedRecord):
        decode(kind, key, value)


@pytest.mark.parametrize("kind", [Checkpoint, Heartbeat])
@pytest.mark.parametrize("version", [-1, 1])
def test_other_versions_are_malformed(kind: type[Mm2Record], version: int) -> None:
    record: Mm2Record = Checkpoint("g", "t", 0, 1, 1) if kind is Checkpoint else Heartbeat("a", "b", 1)
    value = version.to_bytes(2, "big", signed=True) + record.encode_value()[2:]
    with pytest.raises(MalformedRecord, match=f"version {version}"):
        decode(kind, record.encode_key(), value)


@pytest.mark.seconds
def test_mirrormaker_2s_own_classes_read_and_write_the_same_bytes() -> None:
    javac()
    largest = 2**63 - 1
    samples: dict[Mm2Record, str] = {
        OffsetSync("größe", 7, 0, largest): f"downstreamOffset={largest}",
        Checkpoint(
            group="группа",
            topic="east.größe",
            partition=2**31 - 1,
            upstream=5,
            downstream=0,
            metadata="meta \N{SNOWMAN}",
        ): "metadata=meta \N{SNOWMAN}",
        Checkpoint("", "t", 0, largest, largest): f"upstreamOffset={largest}",
        Heartbeat("east", "wëst", 1_700_000_000_000): "timestamp=1700000000000",
    }
    lines = [f"{type(record).__name__} {record.encode_key().hex()} {record.encode_value().hex()}" for record in samples]
    command = [
        str(java_home() / "bin" / "java"),
        "-cp",
        classpath(),
        str(Path(__file__).with_name("MirrorRecords.java")),
    ]
    answer = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=400, check=True)
    answered = [line.split() for line in answer.stdout.splitlines()]
    for (record, part), (key, value, text) in zip(samples.items(), answered, strict=True):
        assert (key, value) == (record.encode_key().hex(), record.encode_value().hex())
        assert part in bytes.fromhex(text).decode()

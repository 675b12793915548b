"""Records declared as fields: what is declared is what is documented, and what cannot be is malformed."""

from __future__ import annotations

import struct
import uuid
from pathlib import Path

import pytest

from airmirror.wire.checkpoints import Checkpoint
from airmirror.wire.fields import INT32, STRING, TEXTS, Together, fields
from airmirror.wire.mappings import KINDS, MappingRecord, decode
from airmirror.wire.primitives import MalformedRecord, Reader, unsigned_varint

FORMATS = (Path(__file__).resolve().parents[2] / "docs" / "formats.md").read_text()


@pytest.mark.parametrize("declared", KINDS.values(), ids=lambda record: record.__name__)
def test_every_kind_is_documented_as_it_is_declared(declared: type[MappingRecord]) -> None:
    row = next(line for line in FORMATS.splitlines() if line.startswith(f"| {declared.kind} "))
    _, _, key, value, _ = (cell.strip() for cell in row.split("|"))
    assert (key, value) == (str(declared.key_fields), str(declared.value_fields))


def test_fields_of_a_fixed_size_are_packed_in_their_order() -> None:
    checkpoint = Checkpoint(group="g", topic="t", partition=2, upstream=5, downstream=6, metadata="m")
    assert checkpoint.encode_key() == b"\0\1g\0\1t\0\0\0\2"
    assert checkpoint.encode_value() == struct.pack(">hqq", 0, 5, 6) + b"\0\1m"
    assert Checkpoint.decode_key(checkpoint.encode_key()) == {"group": "g", "topic": "t", "partition": 2}


def test_a_field_that_is_cut_is_malformed() -> None:
    with pytest.raises(MalformedRecord, match="4 bytes wanted, 3 are left"):
        fields(name=STRING, number=INT32).decode(Reader(b"\0\1a\0\0\0"))


def test_as_many_texts_as_declared() -> None:
    with pytest.raises(MalformedRecord, match="1 texts where there are 2"):
        Together("by, reason", TEXTS).read(Reader(b"\0\0\0\1\0\0\0\1a"), {})


def test_ranges_that_end_past_the_last_offset_are_malformed() -> None:
    """Their sum is no INT64: a database would refuse it, and with it all that is loaded beside it."""
    ours = uuid.UUID(int=1)
    record = MappingRecord(
        source_topic_id=ours,
        topic="orders",
        partition=0,
        source_start=2**62,
        window="w",
        slot=0,
        time_ms=1,
        source_end=2**62,
        target_topic_id=ours,
        remote_topic="east.orders",
        target_start=0,
        target_end=0,
        copied=0,
        control=0,
        aborted=0,
        holes=0,
        lost=0,
        size=0,
        max_timestamp=1,
        leader_epoch=1,
        digest=bytes(16),
        ranges=(),
    )
    value = record.encode_value()[:-29] + b"\1" + unsigned_varint(2**62) + unsigned_varint(1) + unsigned_varint(1)
    with pytest.raises(MalformedRecord, match="ranges that end at"):
        decode(record.encode_key(), value)

"""Our records and MirrorMaker 2's: golden bytes, round trips, and garbage."""

from __future__ import annotations

import contextlib
import struct
import uuid
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airmirror.wire.mappings import (
    Action,
    Decision,
    FlowIdentity,
    Hold,
    LaterRecord,
    Lease,
    LeaseEvent,
    MappedRange,
    MappingRecord,
    ResetRecord,
    Tombstone,
    Verified,
    decode,
)
from airmirror.wire.mirrormaker import (
    SourceOffset,
    decode_source_offset,
    murmur2_partition,
    source_offset_key,
    source_offset_value,
)
from airmirror.wire.moves import GroupMove, ProducerBlock, Rescue
from airmirror.wire.owners import OrderScope, Owner, Ownership
from airmirror.wire.primitives import MalformedRecord
from support.examples import examples

ID = uuid.UUID(int=0x0102030405060708090A0B0C0D0E0F10)
MAPPING = MappingRecord(
    source_topic_id=ID,
    topic="orders",
    partition=3,
    source_start=100,
    window="w1",
    slot=0,
    time_ms=1_700_000_000_000,
    source_end=250,
    target_topic_id=ID,
    remote_topic="east.orders",
    target_start=90,
    target_end=241,
    copied=140,
    control=2,
    aborted=5,
    holes=3,
    lost=0,
    size=5000,
    max_timestamp=1_700_000_000_500,
    leader_epoch=4,
    digest=bytes(range(16)),
    ranges=(MappedRange(100, 90, 100), MappedRange(205, 191, 40)),
)
RECORDS = [
    Lease(window="w1", event=LeaseEvent.RENEWED, owner="host:1", time_ms=1, duration_ms=30_000, slots=4),
    MAPPING,
    replace(MAPPING, min_timestamp=1_699_999_999_000, read_ms=1_699_999_999_900),
    Verified(
        topic="orders", partition=3, source_topic_id=ID, offset=249, target_end=231, window="w1", time_ms=5, seen=7
    ),
    Hold(topic="orders", partition=3, offset=100, reason="größer", window="w1", by="gate", time_ms=5),
    FlowIdentity("east", "west", "id1", "id2", 9),
    FlowIdentity(
        source="east",
        target="west",
        source_cluster_id="id1",
        target_cluster_id="id2",
        time_ms=9,
        policy="IdentityReplicationPolicy",
        separator=".",
        topics=("orders.*", "größe"),
        topics_exclude=("x",),
        upstream=(("north", "id0"), ("nord", "id0")),
    ),
    Decision(
        topic="orders",
        partition=3,
        time_ms=1_700_000_000_000,
        action=Action.RELEASE,
        offset=100,
        reason="größer",
        by="ann",
    ),
    ResetRecord(
        topic="orders",
        partition=3,
        time_ms=7,
        choice="accept-loss",
        problem="was truncated",
        lost_first=10,
        lost_end=20,
        start=20,
        window="reset-1",
        by="me@host",
        reason="größer als nötig",
    ),
    Ownership(
        topic="orders",
        owner=Owner.RETURNING,
        scope=OrderScope.TOPIC,
        remote="east.orders",
        window="return-1",
        time_ms=7,
        frozen_ms=5,
        frozen_offset=4,
        reason="größer",
        by="ann",
    ),
    GroupMove(
        group="größer",
        topic="east.orders",
        partition=3,
        window="f-1",
        before=-1,
        after=8,
        time_ms=9,
        metadata_before="",
    ),
    Rescue(
        source_topic_id=ID,
        topic="orders",
        partition=3,
        source_start=40,
        window="rescue-1",
        source_end=52,
        into="east.orders.rescued.2026-11-22",
        target_start=0,
        target_end=10,
        records=10,
        time_ms=7,
        reason="größer",
        by="ann",
    ),
    ProducerBlock(topic="orders", principal="User:ünn", move="shop", time_ms=7, by="ann"),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_round_trips(record: Lease | MappingRecord) -> None:
    assert decode(record.encode_key(), record.encode_value()) == record
    tombstone = decode(record.encode_key(), None)
    assert isinstance(tombstone, Tombstone) and tombstone.kind == record.kind


def test_the_bytes_of_a_decision_are_as_documented() -> None:
    decision = Decision(topic="o", partition=3, time_ms=5, action=Action.RELEASE, offset=7, reason="why", by="ann")
    assert decision.encode_key() == bytes.fromhex("06 0001 6f 00000003 0000000000000005")
    assert decision.encode_value() == bytes.fromhex("0000 01 0000000000000007 0003") + b"why" + b"\0\x03ann"
    with pytest.raises(MalformedRecord, match="decision 9"):
        decode(decision.encode_key(), b"\0\0\x09" + decision.encode_value()[3:])


def test_the_bytes_of_a_mapping_are_as_documented() -> None:
    key = "02" + ID.bytes.hex() + "00066f7264657273" + "00000003" + "0000000000000064"
    assert MAPPING.encode_key().hex() == key
    value = MAPPING.encode_value()
    assert value.hex().startswith("0000" + "00027731" + "00000000" + "0000018bcfe56800" + "00000000000000fa")
    # two mappings: gaps 0, 0 and count 100; gaps 5, 1 and count 40
    ranges = bytes(range(16)).hex() + "02" + "000064" + "050128"
    assert value.hex().endswith(ranges + struct.pack(">qqiq", -1, -1, -1, -1).hex())
    assert len(MAPPING.encode_key()) == 31 + len("orders")
    assert len(value) == 138 - 4 + len("w1") + len("east.orders") + 1 + 6 + 28
    times = (1_699_999_999_000, 1_699_999_999_900)
    checked = replace(MAPPING, min_timestamp=times[0], read_ms=times[1], target_epoch=7, source_checksum=0xFEDCBA98)
    assert checked.encode_value() == value[:-28] + struct.pack(">qqiq", *times, 7, 0xFEDCBA98)
    assert decode(MAPPING.encode_key(), checked.encode_value()) == checked
    assert (MAPPING.was_read_back, checked.was_read_back) == (False, True)
    with pytest.raises(MalformedRecord, match="28 bytes wanted"):
        decode(MAPPING.encode_key(), value[:-1])
    with pytest.raises(LaterRecord, match="kind 2 in version 1"):
        decode(MAPPING.encode_key(), b"\0\1" + value[2:])
    with pytest.raises(LaterRecord, match="kind 3 in version 1"):
        decode(RECORDS[3].encode_key(), b"\0\1" + RECORDS[3].encode_value()[2:])
    with pytest.raises(MalformedRecord, match="kind 2 in version -1"):  # no version has written that
        decode(MAPPING.encode_key(), b"\xff\xff" + value[2:])


@given(st.binary(max_size=200), st.one_of(st.none(), st.binary(max_size=300)))
@examples(500)
def test_garbage_is_malformed_and_nothing_worse(key: bytes, value: bytes | None) -> None:
    for attempt in (lambda: decode(key, value), lambda: decode_source_offset(key, value)):
        with contextlib.suppress(LaterRecord, MalformedRecord):
            attempt()


@given(st.sampled_from(RECORDS), st.data())
@examples(500)
def test_altered_records_are_malformed_or_other_records(record: Lease, data: st.DataObject) -> None:
    value = bytearray(record.encode_value())
    value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(value)))
    for altered in (bytes(value), bytes(value[:cut])):
        with contextlib.suppress(LaterRecord, MalformedRecord):
            decode(record.encode_key(), altered)


def test_progress_is_byte_for_byte_mirrormaker_2s() -> None:
    key = source_offset_key("A", "t100", 3)
    assert key == b'["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"t100"}]'
    assert source_offset_value(2496412) == b'{"offset":2496412}'
    assert decode_source_offset(key, b'{"offset":5}') == SourceOffset("MirrorSourceConnector", "A", "t100", 3, 5)
    assert decode_source_offset(key, None) == SourceOffset("MirrorSourceConnector", "A", "t100", 3, None)
    assert decode_source_offset(b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"a"}]', b'{"offset":0}') is None
    strimzi = source_offset_key("A", "größe", 0, "A->B.MirrorSourceConnector")
    assert "größe".encode() in strimzi
    found = decode_source_offset(strimzi, b'{"offset":1}')
    assert found is not None and found.topic == "größe"


@given(st.binary(max_size=60))
def test_partitions_are_those_of_kafkas_partitioner(key: bytes) -> None:
    from confluent_kafka import murmur2

    assert murmur2_partition(key, 25) == murmur2(key, 25)

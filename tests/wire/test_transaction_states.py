"""Records of ``__transaction_state``: both versions of the value by fixed bytes, and bytes that are none."""

from __future__ import annotations

import struct

import pytest

from airmirror.wire.primitives import MalformedRecord
from airmirror.wire.transaction_states import topics_of, transactional_id

KEY = bytes.fromhex("0000000473686f70")
# producer id 7, epoch 1, timeout 60 s, ongoing; orders: 0, 1; stock: 2; times
OLD = bytes.fromhex(
    "0000" "0000000000000007" "0001" "0000ea60" "01" "00000002"
    "0006" "6f7264657273" "00000002" "00000000" "00000001"
    "0005" "73746f636b" "00000001" "00000002"
    "0000018bcfe56800" "0000018bcfe56800"
)  # fmt: skip
NEW = bytes.fromhex(
    "0001" "0000000000000007" "0001" "0000ea60" "01" "03"
    "07" "6f7264657273" "03" "00000000" "00000001" "00"
    "06" "73746f636b" "02" "00000002" "01" "05" "02" "abcd"
    "0000018bcfe56800" "0000018bcfe56800" "00"
)  # fmt: skip


def test_both_versions() -> None:
    assert transactional_id(KEY) == "shop" and topics_of(OLD) == topics_of(NEW) == {"orders", "stock"}


def test_what_names_no_topics() -> None:
    ended = OLD[:2] + struct.pack(">qhibi", 7, 1, 60_000, 4, -1) + OLD[-16:]
    assert topics_of(None) == topics_of(ended) == topics_of(b"\x00\x09" + OLD[2:]) == frozenset()
    assert transactional_id(b"\x00\x01" + KEY[2:]) is None, "a kind of key that came later"


@pytest.mark.parametrize("value", [OLD, NEW], ids=["old", "new"])
def test_bytes_that_are_none(value: bytes) -> None:
    for end in range(len(value)):
        try:
            assert topics_of(value[:end]) == {"orders", "stock"}
        except MalformedRecord:
            continue
    for wrong in (b"\xff" * 40, value[:17] + b"\x7f\xff\xff\xff" * 4, value.replace(b"stock", b"\xff" * 5)):
        try:
            topics_of(wrong)
        except MalformedRecord:
            continue
    with pytest.raises(MalformedRecord):
        topics_of(value[:20])
    for key in (None, b"", b"\x00\x00\x00\x09shop", b"\x00\x00\x00\x01\xff"):
        with pytest.raises(MalformedRecord):
            transactional_id(key)

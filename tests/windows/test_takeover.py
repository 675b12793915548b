"""Taking over from MirrorMaker 2: its progress counts, and what it wrote past it is not copied again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airmirror.windows.takeover import overlap
from airmirror_local.brokers import Broker
from support.flows import as_mirrormaker, mirror
from support.topics import Record, produce


@pytest.mark.parametrize(("copied", "progress"), [(100, 99), (100, 60), (100, 0), (300, 250)])
def test_what_is_there_already_is_not_copied_again(
    east: Broker, west: Broker, tmp_path: Path, copied: int, progress: int
) -> None:
    flow = mirror(east, west, tmp_path)
    same = [Record(b"the same", b"k", (), 1_700_000_000_000) for _ in range(20)]
    produce(east, flow.topic, [Record(b"v%d" % n, b"k", (), 1_700_000_000_000 + n) for n in range(260)] + same * 2)
    as_mirrormaker(flow, copied, progress)
    assert flow.run().is_verified
    assert flow.assert_equal() == 300
    produce(east, flow.topic, [Record(b"more")])
    assert flow.run().is_verified
    assert flow.assert_equal() == 301


@given(st.lists(st.sampled_from([b"a", b"b"]), max_size=12), st.data())
def test_the_overlap_is_a_prefix_of_the_source_and_a_suffix_of_the_target(
    source: list[bytes], data: st.DataObject
) -> None:
    before = data.draw(st.lists(st.sampled_from([b"a", b"b"]), max_size=6))
    there = data.draw(st.integers(0, len(source)))
    target = before + source[:there]
    count = overlap(source, target, before)
    assert target[len(target) - count :] == source[:count]


def test_distinct_records_overlap_exactly() -> None:
    source = [b"%d" % n for n in range(10)]
    for there in range(11):
        assert overlap(source, [b"x", *source[:there]], [b"x"]) == there

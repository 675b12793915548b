"""Packing partitions into slots."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from airmirror.windows.plan import pack
from airmirror.windows.slots import SlotPartition


def partition(number: int) -> SlotPartition:
    return SlotPartition("orders", number, "east.orders", 0, 1, UUID(int=1), UUID(int=2), -1, -1, False, 1_000_000)


@given(st.lists(st.floats(0, 1e12), max_size=60), st.integers(1, 8))
def test_every_partition_is_in_one_slot_and_no_slot_has_more_than_its_part(sizes: list[float], slots: int) -> None:
    sized = {partition(number): size for number, size in enumerate(sizes)}
    packed = pack(list(sized.items()), slots)
    assert sorted(each.partition for members, _ in packed for each in members) == list(range(len(sizes)))
    assert len(packed) == min(slots, len(sizes)) and all(members for members, _ in packed if any(sizes))
    bytes_of = [sum(sized[each] for each in members) for members, _ in packed]
    if sum(sizes):
        # The largest first, each to the emptiest slot: what makes a slot the fullest was put into the emptiest one.
        assert max(bytes_of) - min(bytes_of) <= max(sizes) * 1.000001
        assert abs(sum(share for _, share in packed) - 1) < 1e-6

"""The number of slots: by bytes, by the age of the lag, by what Spark runs now and could run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airmirror.config import Window
from airmirror.windows.demand import GROWTH, Capacity, Demand, at_most, slots_for

WINDOW = Window(max_ms=120_000, slot_bytes=100)
OLD = WINDOW.max_ms + 1


@pytest.mark.parametrize(
    ("demand", "capacity", "flows", "slots"),
    [
        (Demand(()), Capacity(8, 8), 1, 1),  # only old things to settle
        (Demand((1.0,) * 10), Capacity(8, 8), 1, 1),  # a small flow holds one core
        (Demand((100.0, 101.0)), Capacity(8, 8), 1, 2),  # a partition is in one slot
        (Demand((101.0,) * 3), Capacity(8, 8), 1, 3),
        (Demand((1e9,) * 50), Capacity(8, 64), 1, 8),  # what is there may be enough
        (Demand((1e9,) * 50), Capacity(8, 64), 4, 2),  # an equal part each
        (Demand((1e9,) * 50), Capacity(2, 64), 4, 1),
        (Demand((1e9,) * 50, OLD), Capacity(8, 64), 1, 32),  # it was not: GROWTH times that
        (Demand((1e9,) * 50, OLD), Capacity(8, 20), 1, 20),  # as far as Spark may grow
        (Demand((1e9,) * 50, OLD), Capacity(8, 20), 4, 17),  # a core for each other flow
        (Demand((1e9,) * 50, OLD), Capacity(2, 64), 10, 8),  # which others need not have yet
        (Demand((1e9,) * 50, OLD), Capacity(2, 2), 4, 1),
        (Demand((1e9,) * 50, OLD - 1), Capacity(8, 20), 4, 2),
        (Demand((90.0,) * 3, OLD), Capacity(8, 20), 1, 3),  # old and small
        (Demand((1e9,) * 50), at_most(5), 1, 5),
        (Demand((1e9,) * 50, OLD), at_most(5), 1, 5),  # tasks.max = 5, however late
    ],
)
def test_slots(demand: Demand, capacity: Capacity, flows: int, slots: int) -> None:
    assert slots_for(demand, WINDOW, capacity, flows) == slots


def test_a_window_that_follows_keeps_to_an_equal_part() -> None:
    follows, late = replace(WINDOW, follow_ms=3_600_000), Demand((1e9,) * 50, OLD)
    assert slots_for(late, follows, Capacity(8, 20), 4) == 5
    assert slots_for(replace(late, waited_ms=0), follows, Capacity(8, 20), 4) == 2


@given(
    st.lists(st.floats(0, 1e12), max_size=60),
    st.integers(0, 10**9),
    st.integers(1, 40),
    st.integers(0, 400),
    st.integers(1, 9),
    st.sampled_from([0, 60_000]),
)
def test_never_more_than_there_can_be_nor_than_others_leave(
    sizes: list[float], waited_ms: int, now: int, more: int, flows: int, follow_ms: int
) -> None:
    window, capacity = replace(WINDOW, follow_ms=follow_ms), Capacity(now, now + more)
    slots = slots_for(Demand(tuple(sizes), waited_ms), window, capacity, flows)
    assert 1 <= slots <= max(1, min(len(sizes), capacity.most, GROWTH * now))
    assert slots == 1 or slots + flows - 1 <= capacity.most, "every other flow has a core"
    if waited_ms <= window.max_ms:
        assert slots == 1 or slots * flows <= now, "no slot waits for a core"
    assert slots <= slots_for(Demand((*sizes, 1e12), waited_ms), window, capacity, flows), "more bytes, no fewer slots"
    assert slots <= slots_for(Demand(tuple(sizes), waited_ms + 10**6), window, capacity, flows), "later, no fewer slots"

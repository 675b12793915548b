"""The ends of windows and the failures since, on both databases: kept by a rebuild, since the first failure, bounded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from airmirror.ledger import Ledger
from airmirror.ledger.outcomes import MOST_ENDS, MOST_ERROR, STUBBORN, WHOLE
from airmirror.partitions import TopicPartition
from airmirror.slot.errors import PartitionFailed, TargetUnavailable

FOREIGN = PartitionFailed("east", "orders", 0, "odd \x00 and \udc80 text")
ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    with closing(Ledger(ledger_url)) as opened:
        yield opened


def test_a_failure_is_known_since_it_was_seen_first(ledger: Ledger) -> None:
    flow, other = ledger.flow("east->west"), ledger.flow("west->east")
    for number in range(3):
        flow.note_window(f"w{number}", {ORDERS: FOREIGN}, passed=lambda key: True)
    other.note_window("w", {TopicPartition("orders", 1): FOREIGN}, passed=lambda key: True)
    (failure,) = flow.failures()
    assert (failure.key, failure.windows, failure.first_window, failure.window) == (ORDERS, 3, "w0", "w2")
    assert failure.since_ms == flow.window_ends()["w0"].time_ms <= failure.last_ms
    assert "odd \\x00 and \\udc80 text" in failure.error and failure.needs_somebody
    # A window that did not try the partition tells nothing of it; one that did and found nothing wrong ends the failure.
    flow.note_window("narrowed", {}, passed=lambda key: key != ORDERS, idle=True)
    assert flow.failures() == [failure]
    flow.note_window("well", {}, passed=lambda key: True)
    assert flow.failures() == [] and len(other.failures()) == 1
    assert flow.window_ends().keys() == {"w0", "w1", "w2", "well"}
    flow.note_window("again", {ORDERS: FOREIGN}, passed=lambda key: True)
    assert flow.failures()[0].first_window == "again"


def test_what_should_pass_by_itself_and_does_not_needs_somebody(ledger: Ledger) -> None:
    flow = ledger.flow("east->west")
    error = TargetUnavailable("east", *ORDERS, "west", "east.orders", "no leader")
    assert error.transient
    for number in range(STUBBORN):
        assert not any(failure.needs_somebody for failure in flow.failures())
        flow.note_window(f"w{number}", {ORDERS: error}, passed=lambda key: False)
    assert flow.failures()[0].needs_somebody


def test_a_rebuild_leaves_what_only_the_ledger_knows(ledger: Ledger) -> None:
    flow = ledger.flow("east->west")
    flow.note_window("w", {ORDERS: FOREIGN, WHOLE: FOREIGN}, passed=lambda key: False)
    before = flow.failures(), flow.window_ends()
    assert flow.replace_by(flow.anew())
    assert (flow.failures(), flow.window_ends()) == before and len(before[0]) == 2
    flow.forget()  # as whoever finds that the target has no mapping topic any more
    assert (flow.failures(), flow.window_ends()) == before


def test_what_is_kept_has_bounds(ledger: Ledger) -> None:
    flow = ledger.flow("east->west")
    long = PartitionFailed("east", "orders", 0, "x" * 3 * MOST_ERROR)
    for number in range(MOST_ENDS + 30):
        flow.note_window(f"w{number}", {WHOLE: long}, passed=lambda key: False)
    ends = flow.window_ends()
    assert MOST_ENDS <= len(ends) < MOST_ENDS + 30 and f"w{MOST_ENDS + 29}" in ends
    assert {len(end.error) for end in ends.values()} == {MOST_ERROR} == {len(flow.failures()[0].error)}

"""The amount fetched at once follows what the target takes."""

from __future__ import annotations

from airmirror.slot.pace import FIRST_BYTES, LEAST_BYTES, Pace

MOST = 4 << 20


def test_a_fast_target_is_given_the_most_after_two_fetches() -> None:
    pace = Pace(60_000)
    for _ in range(2):
        pace.took(pace.bytes, 0.001, MOST)
    assert pace.bytes == MOST


def test_a_slow_target_is_given_what_it_takes_in_an_eighth_of_the_time() -> None:
    pace = Pace(8_000)
    pace.took(pace.bytes, 10.0, MOST)
    assert pace.bytes == FIRST_BYTES // 10
    pace.took(100, 1.0, MOST)  # the source had no more
    assert pace.bytes == FIRST_BYTES // 10


def test_a_fetch_that_was_not_full_is_a_reason_for_less_and_never_for_more() -> None:
    pace = Pace(8_000, MOST)
    pace.took(20_000, 0.001, MOST)
    assert pace.bytes == MOST
    pace.took(20_000, 0.1, MOST)
    assert pace.bytes == 200_000
    pace.took(20_000, 0.001, MOST)
    assert pace.bytes == 200_000


def test_every_attempt_that_fails_asks_for_less_down_to_the_least() -> None:
    pace = Pace(1_000)
    sizes = []
    for _ in range(4):
        pace.failed()
        sizes.append(pace.bytes)
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] == LEAST_BYTES

"""A long return is accounted for in several transactions: killed after each and run again, nothing is missing or comes twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airmirror.flows.prepare import prepare
from airmirror.flows.verification import compare_all
from airmirror.runbooks.failback.steps import is_done, return_step
from airmirror.windows import continuing, driver
from support.failovers import PLANNED, fail_over
from support.killing import killed_at
from support.returns import ORDER, Both, forward_and_reverse, write
from support.sides import Sides


def killed_after_each_commit(both: Both, directory: Path, run: Callable[[Both], object]) -> int:
    """Run it by another deployment each time, until it is never killed; how often it was."""
    for times in range(20):
        try:
            with killed_at(driver, "commit", after=True):
                run(both.elsewhere(directory))
        except pytest.fail.Exception:
            return times
    raise AssertionError("it is never done")


def commits(monkeypatch: pytest.MonkeyPatch, both: Both, directory: Path) -> int:
    """Fail back in one go; how often that commits."""
    times, real = list[None](), driver.commit

    def counted(*given: Any, **named: Any) -> Any:
        done = real(*given, **named)
        times.append(None)
        return done

    with monkeypatch.context() as patched:
        patched.setattr(driver, "commit", counted)
        both.elsewhere(directory).fail_back()
    return len(times)


@pytest.mark.long
@pytest.mark.parametrize("killed", [False, True])
def test_a_long_return_is_accounted_for_in_several_transactions(
    sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    monkeypatch.setattr(continuing, "MOST_RUNS", 1)
    both = forward_and_reverse(sides.east, sides.west, tmp_path, partitions=1)
    everything = write(both.east, both.topic, 0, 6, partitions=1)
    both.window(both.forward)
    fail_over(both.forward, PLANNED)
    return_step(both.pair, ORDER)
    for first in (100, 200):
        everything += write(both.west, both.remote, first, 3, partitions=1)
        both.window(both.reverse)
    times = killed_after_each_commit(both, tmp_path, Both.fail_back) if killed else commits(monkeypatch, both, tmp_path)
    assert times == 4, "a window each, and two of who owns it"
    assert is_done(both.pair) and both.values(both.east)[0] == both.values(both.west)[0] == everything
    for first in (300, 400):
        everything += write(both.east, both.topic, first, 3, partitions=1)
        assert both.window(both.forward).copied == 3
    assert all(row.error is None for row in compare_all(both.forward, []))
    fail_over(both.forward, PLANNED)

    returns = list[bool]()

    def begin(other: Both) -> None:
        returns.append(bool(prepare(other.now(other.reverse)).topics))
        return_step(other.pair, ORDER)

    assert killed_after_each_commit(both, tmp_path, begin) == 3
    assert returns == [False, False, False, True], "nothing returns before all that was brought is known"
    everything += write(both.west, both.remote, 500, 3, partitions=1)
    both.fail_back()
    assert both.values(both.east)[0] == both.values(both.west)[0] == everything
    assert all(row.error is None for row in compare_all(both.forward, []))

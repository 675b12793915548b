"""Records that differ on both sides at the last step: told one by one, and the way out is a person's word, never silence."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from airmirror.flows import freezing
from airmirror.flows.freezing import owners_now
from airmirror.flows.prepare import prepare
from airmirror.flows.verification import compare_all
from airmirror.report.page import page
from airmirror.runbooks.failback import steps, unfreezing
from airmirror.runbooks.failback.differing import ReturnDiffers
from airmirror.runbooks.failback.shown import shown_outcome
from airmirror.runbooks.failback.steps import is_done
from airmirror.windows.window import WindowOrder, run_window
from airmirror.wire.mappings import MappedRange
from airmirror.wire.owners import WHOLE
from support.disks import alter_value
from support.failovers import DISASTER, PLANNED, fail_over, without_source
from support.flows import in_this_process
from support.killing import killed_at
from support.returns import ORDER, Both, forward_and_reverse, write
from support.sides import Sides

ACCEPT = replace(ORDER, accept=True)


def offset_of(both: Both, value: bytes, *, on_west: bool = False) -> int:
    cluster = both.west if on_west else both.east
    return next(each.offset for its in both.records(cluster).values() for each in its if each.value == value)


def resumes(both: Both) -> None:
    """The next records are replicated, and nothing is copied again; the whole of both logs is as the account has it."""
    before = {number: len(its) for number, its in both.values(both.west).items()}
    new = write(both.east, both.topic, 700, 4, partitions=1)
    result = both.window(both.forward)
    assert result.is_verified and result.copied == len(new)
    assert both.values(both.west)[0][before[0] :] == new
    assert all(row.error is None for row in compare_all(both.forward, []))


def clock(hours: int) -> SimpleNamespace:
    """A clock that is so far ahead, or behind."""
    return SimpleNamespace(time=lambda: time.time() + hours * 3600, monotonic=time.monotonic)


def test_what_returned_and_differs_keeps_the_flow_frozen_until_a_person_accepts_it(
    sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the decision, and run again by another deployment: the report tells of it all the same.

    It does so although the flow was frozen by a clock that is an hour ahead of the failback's.
    """
    both = forward_and_reverse(sides.east, sides.west, tmp_path, partitions=1)
    replicated = write(both.east, both.topic, 0, 10, partitions=1)
    both.window(both.forward)
    with monkeypatch.context() as patched:
        patched.setattr(freezing, "time", clock(1))
        fail_over(both.forward, PLANNED)
    since = write(both.west, both.remote, 100, 8, partitions=1)
    steps.return_step(both.pair, ORDER)
    both.window(both.reverse)
    altered = {alter_value(both.east, both.topic, 0, value): value for value in (b"v102", b"v105", b"v106")}
    other = both.elsewhere(tmp_path)
    with pytest.raises(ReturnDiffers, match="failback run --accept-loss --reason '…' --yes"):
        other.fail_back()
    assert WHOLE in owners_now(other.forward).frozen
    begins, (shown,) = steps.look(other.pair, ACCEPT)
    runs = {now: (offset_of(both, now), offset_of(both, was, on_west=True)) for now, was in altered.items()}
    assert shown.runs == (MappedRange(*runs[b"w102"], 1), MappedRange(*runs[b"w105"], 2)) and begins == []

    with killed_at(unfreezing, "commit_change"):
        both.elsewhere(tmp_path).fail_back(accept=True)
    last = both.elsewhere(tmp_path)
    made = last.outcome(ACCEPT, last.fail_back(accept=True))
    assert is_done(last.pair) and not made.is_good and "which was accepted" in shown_outcome(made).headline
    assert [(each.records, each.behind) for each in made.returned] == [(5, 0)], "what the run before has accounted for"
    (told,) = made.accepted
    offsets = f"offsets {runs[b'w102'][0]}, {runs[b'w105'][0]} to {runs[b'w106'][0]}"
    assert told.problem.endswith(offsets) and (told.by, told.reason) == ("ada", ORDER.reason)
    shown = shown_outcome(made)
    assert offsets in page(shown.as_dict() | {"signer": None}) and shown.rows("accepted")[0]["by"] == "ada"
    now = {was: became for became, was in altered.items()}
    assert both.values(both.west)[0] == [*replicated, *since], "nothing is altered on either side"
    assert both.values(both.east)[0] == [*replicated, *(now.get(each, each) for each in since)]
    resumes(last)


@pytest.mark.long  # above its clock is ahead
def test_what_returned_and_what_was_accepted_is_told_by_whatever_clock_the_flow_was_frozen(
    sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour ahead of the failback's, then an hour behind: nothing is missing in a report, or told again by the next one."""
    both = forward_and_reverse(sides.east, sides.west, tmp_path, partitions=1)
    write(both.east, both.topic, 0, 6, partitions=1)
    both.window(both.forward)
    for first, count, hours in ((100, 5, 1), (200, 3, -1)):
        with monkeypatch.context() as patched:
            patched.setattr(freezing, "time", clock(hours))
            fail_over(both.forward, PLANNED)
        write(both.west, both.remote, first, count, partitions=1)
        steps.return_step(both.pair, ORDER)
        both.window(both.reverse)
        altered = alter_value(both.east, both.topic, 0, b"v101") if hours > 0 else None
        made = both.outcome(ACCEPT, both.fail_back(accept=True))
        told = [(each.records, each.behind) for each in made.returned], len(made.accepted)
        assert told == (([(4, 0)], 1) if altered else ([(3, 0)], 0))


def test_what_was_replicated_and_was_never_proven_returns_when_a_person_accepts_it(
    sides: Sides, tmp_path: Path
) -> None:
    """A disaster between a commit and its gate, and a target that does not hold what was committed."""
    both = forward_and_reverse(sides.east, sides.west, tmp_path, partitions=1)
    write(both.east, both.topic, 0, 10, partitions=1)
    prepared = prepare(both.forward)
    run_window(
        prepared.opened.flow,
        both.forward.ledger,
        prepared.topics,
        in_this_process,
        WindowOrder("w1", slots=lambda _: 1, advance=False),
    )
    assert alter_value(both.west, both.remote, 0, b"v4") == b"w4"
    unproven, _, _ = fail_over(without_source(both.forward), DISASTER)
    assert [each.partition for each in unproven] == [0]
    since = write(both.west, both.remote, 100, 5, partitions=1)
    with pytest.raises(ReturnDiffers, match=r"offset 4 differs"):
        both.fail_back()
    assert both.now(both.reverse).flow.returns == {}
    _, (shown,) = steps.look(both.pair, ORDER)
    assert shown.runs == (MappedRange(4, 4, 1),)
    made = both.outcome(ACCEPT, both.fail_back(accept=True))
    assert is_done(both.pair) and [each.problem.rpartition(" ")[2] for each in made.accepted] == ["4"]
    assert both.values(both.east)[0][10:] == since
    resumes(both)

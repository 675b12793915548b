"""A failback makes no streams group on a source that it would break, and says so before the return is ended."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.clusters.protocol.groups import Committed, Group
from airmirror.flows.freezing import owners_now
from airmirror.offsets import positions
from airmirror.offsets.positions import GroupPosition
from airmirror.offsets.translation import Translated
from airmirror.runbooks.failback import steps
from airmirror.runbooks.failback.steps import GroupsNotBack, drain_step, return_step, unfreeze_step
from airmirror.wire.owners import Owner
from support.failovers import PLANNED, fail_over
from support.groups import commit, committed
from support.returns import ORDER, forward_and_reverse, write
from support.sides import Sides
from support.streams_groups import streams_group

NAMES = {"east.orders": "orders"}


def test_a_streams_group_that_the_source_would_break_on_is_named_before_the_return_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And before the flow is unfrozen, whoever takes that step alone."""
    row = GroupPosition("counts", "east.orders", 0, Committed(5), "orders", Translated(5, 5), kind="streams")
    here = dict[str, Group]()
    settings = SimpleNamespace(
        streams_groups_ahead_allowed=False, streams_applications=(), failover_quiet_ms=0, name="west->east"
    )
    flow = SimpleNamespace(name="west->east", settings=settings, source="west")
    reverse = SimpleNamespace(flow=flow, ledger=None)
    pair: Any = SimpleNamespace(
        flow=SimpleNamespace(name="east->west", source="east"), reverse=reverse, forward=SimpleNamespace(ledger=None)
    )
    pair.now = lambda: pair
    mirror = SimpleNamespace(refresh=lambda: None, flow=flow, target="east")
    replaced: dict[str, Any] = {
        "_returning": lambda *_: NAMES,
        "is_over": lambda *_: False,
        "await_quiet": lambda *_, **__: None,
        "ends_of": lambda *_: {},
        "prove_past": lambda *_: None,
        "Routes": lambda *_: nullcontext(None),
        "came_from_target": lambda _: [],
        "Mirror": SimpleNamespace(open=lambda *_: nullcontext(mirror)),
        "group_positions": lambda *_: [row],
        "committed_offsets": lambda *_: {"counts": {row.remote: Committed(5)}} if here else {},
        "unfreeze_after_return": lambda pair, names, order, last, tell: last() or [],
    }
    for name, value in replaced.items():
        monkeypatch.setattr(steps, name, value)
    monkeypatch.setattr(positions, "may_break", lambda _: True)
    monkeypatch.setattr(positions, "list_groups", lambda _: here)
    for step in (drain_step, unfreeze_step):
        with pytest.raises(GroupsNotBack, match=r"counts in east\.orders-0 at 5: a streams group .*KAFKA-20254"):
            step(pair, ORDER)
    here["counts"] = Group("counts", "Empty", "streams")
    for step in (drain_step, unfreeze_step):
        step(pair, ORDER)


@pytest.mark.long  # above it is told without brokers
def test_a_streams_group_of_the_target_alone_keeps_what_returns_returning(sides: Sides, tmp_path: Path) -> None:
    """As on a source that was made anew after a disaster."""
    both = forward_and_reverse(sides.east, sides.west, tmp_path)
    write(both.east, both.topic, 0, 6)
    both.window(both.forward)
    fail_over(both.forward, PLANNED)
    write(both.west, both.remote, 100, 4)
    streams_group(both.west, both.group, both.remote)
    commit(both.west, both.group, {(both.remote, 0): 5})
    return_step(both.pair, ORDER)
    with pytest.raises(GroupsNotBack, match=f"{both.group} in {both.remote}-0 at 5: .*KAFKA-20254"):
        drain_step(both.pair, ORDER)
    assert owners_now(both.forward).returning((Owner.RETURNING,)) == {both.remote: both.topic}
    assert committed(both.east, both.group) == {}
    streams_group(both.east, both.group, both.topic)  # its application was started there once
    both.fail_back()
    assert committed(both.east, both.group) == {(both.topic, 0): 4}, "before it there is no marker of a transaction"
    assert not owners_now(both.forward).frozen

"""What people decide while positions are read, or records pruned: the positions are read again, the records kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from airmirror.clusters.protocol.groups import Committed
from airmirror.offsets import groups, pruning
from airmirror.offsets.groups import settled
from airmirror.offsets.positions import GroupPosition
from airmirror.offsets.pruning import kept_topics, prune_mappings
from airmirror.offsets.translation import Reason, Translated
from airmirror.windows.errors import FlowBusy
from airmirror.wire.moves import GroupMove
from airmirror.wire.owners import Change, OrderScope, Owners, Signed, after, changed

MIRROR = cast(Any, SimpleNamespace(index=SimpleNamespace(owners=lambda: [], of_kind=lambda _: [])))


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Tell these resets at each look at what people have decided, the last ones for ever."""

    def tell(*resets: list[str]) -> None:
        each: Iterator[list[str]] = iter(resets)
        monkeypatch.setattr(groups, "known_resets", lambda _mirror: next(each))
        monkeypatch.setattr(groups, "resets", lambda _mirror: next(each))

    return tell


def test_positions_are_read_again_when_somebody_has_decided_meanwhile(decided: Callable[..., None]) -> None:
    looks = iter(["before the reset", "after it"])
    decided([], ["a reset"], ["a reset"])
    assert settled(MIRROR, lambda: cast(Any, next(looks))) == "after it"


def test_positions_are_read_once_when_nobody_has(decided: Callable[..., None]) -> None:
    looks = iter(["once"])
    decided(["an old reset"], ["an old reset"])
    assert settled(MIRROR, lambda: cast(Any, next(looks))) == "once"


def test_a_position_goes_back_by_itself_only_while_its_topic_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the reverse flow, and not once it has returned; what a person names goes back before that too."""
    place = {"group": "billing", "topic": "east.orders", "partition": 0, "remote_topic": "orders"}
    rows = [GroupPosition(**place, committed=Committed(5), found=Translated(5, 5), back=True)]
    its = [replace(rows[0], topic="payments", back=False)]
    mirror = cast(Any, SimpleNamespace(flow=None, index=SimpleNamespace(owners=Owners, of_kind=lambda _: [])))
    key = "billing", "east.orders", 0
    signed, owners = Signed("w", 3, 1, "why", "ada"), Owners()
    monkeypatch.setattr(groups, "reverse_ledger", lambda *_: SimpleNamespace(owners=lambda: owners))
    seen = []
    for change in (None, Change.FREEZE, Change.BEGIN, Change.END):
        remote = {"orders": "east.orders"}
        new = changed(owners, change, ["orders"], signed, scope=OrderScope.TOPIC, remote=remote) if change else []
        owners = after(owners, new)
        seen.append([groups._shut(mirror, rows, only).get(key) for only in ((), ["billing"])])
        assert groups._shut(mirror, its, ()) == {}
    away = [Reason.FROM_TARGET, None]
    assert seen == [away, away, [None, None], [Reason.FROZEN, Reason.FROZEN]]


def test_no_window_moves_a_group_that_a_migration_has_cut_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been set back on the target, to read again. What others have moved goes on with the flow."""
    monkeypatch.setattr(groups, "reverse_ledger", lambda *_: SimpleNamespace(owners=Owners))
    rows = [GroupPosition("billing", "orders", 0, Committed(5), "east.orders", Translated(5, 5))]
    for window, expected in (("move-shop", {("billing", "orders", 0): Reason.CUT_OVER}), ("return-x", {})):
        move = GroupMove("billing", "east.orders", 0, window, 3, 5, 1, "")
        index = SimpleNamespace(owners=Owners, of_kind=lambda _, its=move: [its])
        for only in ((), ["billing"]):
            assert groups._shut(cast(Any, SimpleNamespace(flow=None, index=index)), rows, only) == expected


UNDONE = (Change.BEGIN, Change.END, Change.GIVE_UP)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(UNDONE[:1], {"frozen", "returns"}, id="it returns"),
        pytest.param(UNDONE, {"frozen", "returns"}, id="a failback was undone"),
        pytest.param((*UNDONE, Change.UNFREEZE), {"frozen"}, id="and the topic unfrozen"),
    ],
)
def test_what_is_frozen_or_returns_keeps_all_its_mapping_records(
    changes: tuple[Change, ...], expected: set[str]
) -> None:
    signed = Signed("w", 3, 1, "why", "ada")
    shut = Owners.of(changed(Owners(), Change.FREEZE, ["frozen", "orders"], signed, scope=OrderScope.TOPIC))
    back = shut
    for change in changes:
        remote = {"orders": "returns"} if change is Change.BEGIN else None
        back = after(back, changed(back, change, ["orders"], signed, scope=OrderScope.TOPIC, remote=remote))
    reverse = SimpleNamespace(owners=lambda: back)
    state = SimpleNamespace(known=[("other", 0)])
    ledger = SimpleNamespace(owners=lambda: Owners({"frozen": shut.records["frozen"]}), state=lambda: state)
    ledger.other = lambda name: {"west->east": reverse}[name]
    assert kept_topics(cast(Any, SimpleNamespace(reverse_name="west->east")), cast(Any, ledger)) == expected


@pytest.mark.parametrize(
    ("seconds", "left", "expected"),
    [
        pytest.param(60.0, [3, 3, 1], 7, id="all"),
        pytest.param(0.0, [3, 3, 1], 3, id="for a minute"),
        pytest.param(60.0, [3, FlowBusy("east->west", "w", "other", 1)], 3, id="until another one comes between"),
    ],
)
def test_what_a_window_has_left_in_hours_is_pruned_lease_by_lease(
    seconds: float, left: list[int | Exception], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One lease's records an hour would be fewer than come. Windows wait for a minute only."""
    monkeypatch.setattr(pruning, "Routes", lambda *_: nullcontext(SimpleNamespace(topic_ids={})))
    monkeypatch.setattr(pruning, "extents", lambda *_: {})
    monkeypatch.setattr(pruning, "kept_topics", lambda *_: set())
    monkeypatch.setattr(pruning, "MOST", 3)
    monkeypatch.setattr(pruning, "SECONDS", seconds)
    monkeypatch.setattr(pruning, "delete_mappings", Mock(side_effect=left))
    flow, ledger = SimpleNamespace(source=None, name="east->west"), SimpleNamespace(last_mappings=dict)
    assert prune_mappings(cast(Any, flow), cast(Any, ledger)) == expected


def test_what_may_not_be_pruned_at_all_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has the lease is done first: the task is tried again."""
    monkeypatch.setattr(pruning, "Routes", lambda *_: nullcontext(SimpleNamespace(topic_ids={})))
    monkeypatch.setattr(pruning, "extents", lambda *_: {})
    monkeypatch.setattr(pruning, "kept_topics", lambda *_: set())
    monkeypatch.setattr(pruning, "delete_mappings", Mock(side_effect=FlowBusy("east->west", "w", "other", 1)))
    flow, ledger = SimpleNamespace(source=None, name="east->west"), SimpleNamespace(last_mappings=dict)
    with pytest.raises(FlowBusy):
        prune_mappings(cast(Any, flow), cast(Any, ledger))

"""An undo makes no streams group where its positions may break it: neither on the source nor on the target; without brokers."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.clusters.protocol.groups import Committed, Group
from airmirror.config import parse
from airmirror.offsets import positions
from airmirror.offsets.positions import GroupPosition
from airmirror.offsets.translation import Translated
from airmirror.partitions import TopicPartition
from airmirror.runbooks import moving
from airmirror.runbooks.migration import carrying, undo
from airmirror.runbooks.migration.chosen import Move
from airmirror.runbooks.shown import shown_undo
from airmirror.wire.moves import GroupMove
from support.migrations import ORDER

MOVE, KEY = Move("shop", {"orders": "east.orders"}, ("counts",), None), TopicPartition("east.orders", 0)
Kinds = Mapping[str, str]  # of the group, by cluster; where it is not, there is none


def at(monkeypatch: pytest.MonkeyPatch, kinds: Kinds, now: int, *, seen: str = "", breaks: str = "east west") -> Any:
    """A session of a flow whose group was cut over from 4 to 9, and stands at ``now`` on the target, nowhere on the source;
    ``seen``: its kind as the ledger has it."""

    def listed(cluster: str) -> dict[str, Group]:
        return {"counts": Group("counts", "Empty", kinds[cluster])} if cluster in kinds else {}

    def stable(cluster: str, groups: object, topics: object) -> dict[str, dict[TopicPartition, Committed]]:
        return {"counts": {KEY: Committed(now)}} if cluster == "west" and now >= 0 else {}

    for module in (moving, carrying, positions):
        monkeypatch.setattr(module, "list_groups", listed)
    for each in (moving, carrying):
        monkeypatch.setattr(each, "stable_offsets", stable)
    row = GroupPosition("counts", *KEY, Committed(now), "orders", Translated(now, now), back=True)
    monkeypatch.setattr(carrying, "positions_on_source", lambda *_: [row])
    monkeypatch.setattr(positions, "may_break", lambda cluster: cluster in breaks)
    move = GroupMove("counts", *KEY, ORDER.window, before=4, after=9, time_ms=0, metadata_before="note")
    index = SimpleNamespace(of_kind=lambda _: [move], group_lags=lambda: [SimpleNamespace(group="counts", kind=seen)])
    settings = SimpleNamespace(streams_applications=(), streams_groups_ahead_allowed=False)
    flow = SimpleNamespace(settings=settings, reverse_name="west->east")
    target: Any = West("west")
    return SimpleNamespace(source="east", target=target, index=index, flow=flow)


class West(str):
    alias = "west"


@pytest.mark.parametrize(
    ("kinds", "seen", "is_named"),
    [
        pytest.param({"west": "streams"}, "", True, id="it has expired on the source"),
        pytest.param({"west": "streams", "east": "streams"}, "", False, id="it is there"),
        pytest.param({"west": "streams", "east": "classic"}, "", True, id="there only as positions"),
        pytest.param({"west": "classic"}, "streams", True, id="it has not come to the target yet"),
        pytest.param({"west": "classic"}, "classic", False, id="a classic one"),
        pytest.param({"west": "consumer"}, "", False, id="a consumer group"),
    ],
)
def test_a_streams_group_is_not_made_on_the_source(
    kinds: Kinds, seen: str, is_named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = at(monkeypatch, kinds, 12, seen=seen)
    found = carrying.going_back(mirror, MOVE, ORDER)
    assert found.written == {"counts": {TopicPartition("orders", 0): Committed(12)}}
    named = f"counts in {KEY}: {carrying.STREAMS_GONE}; west->east.streams.groups.ahead.allowed"
    assert found.reasons == ((named,) if is_named else ())
    assert carrying.going_back(mirror, MOVE, ORDER, ahead_allowed=True).reasons == ()
    assert carrying.going_back(at(monkeypatch, kinds, 12, seen=seen, breaks="west"), MOVE, ORDER).reasons == ()


def test_an_application_that_is_named_is_taken_for_a_streams_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no ledger knows it any more. Where the source has it as a classic group, it was one before."""
    for here, seen, is_named in (({}, "", True), ({"east": "classic"}, "", False), ({}, "classic", False)):
        mirror = at(monkeypatch, {"west": "classic"} | here, 12, seen=seen)
        mirror.flow.settings.streams_applications = ("counts",)
        assert bool(carrying.going_back(mirror, MOVE, ORDER).reasons) == is_named


@pytest.mark.parametrize(
    ("kinds", "now", "seen", "before"),
    [
        pytest.param({}, -1, "streams", -1, id="deleted on the target since"),
        pytest.param({}, -1, "classic", 4, id="a classic one"),
        pytest.param({"west": "streams"}, -1, "streams", 4, id="its position has expired alone"),
        pytest.param({"west": "classic"}, 9, "streams", 4, id="it has a position"),
    ],
)
def test_a_streams_group_is_not_made_again_on_the_target(
    kinds: Kinds, now: int, seen: str, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes back to nowhere, and nothing is left of its move."""
    mirror = at(monkeypatch, kinds, now, seen=seen)
    (found,) = moving.to_put_back(mirror, lambda _: True)
    assert (found.move.before, found.move.metadata_before) == (before, "note" if before >= 0 else "")
    assert found.is_back == found.is_left == (before < 0) and not found.why_not
    said = [each.evidence for each in shown_undo("migration", "shop", "", (), "", [], [found]).findings]
    assert sum("(KAFKA-20254): counts in east.orders-0" in each for each in said) == (before < 0)
    mirror.flow.settings.streams_groups_ahead_allowed = True
    (found,) = moving.to_put_back(mirror, lambda _: True)
    assert found.move.before == 4


def test_what_the_source_takes_is_said_by_the_reverse_flow() -> None:
    """``streams.groups.ahead.allowed`` of a flow is about its target. The reverse flow need not be enabled."""
    lines = (
        "clusters = east, west\neast.bootstrap.servers = a:1\nwest.bootstrap.servers = b:1\neast->west.enabled = true\n"
    )
    for key, is_allowed in (("east->west", False), ("west->east", True)):
        configuration = parse(f"{lines}{key}.streams.groups.ahead.allowed = true", "test")
        opened: Any = SimpleNamespace(configuration=configuration, flow=configuration.flow("east->west"))
        assert undo._may_be_ahead(opened) == is_allowed

"""The topics that may return while the whole flow is frozen, and some came back before, by their names; without brokers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from airmirror.partitions import TopicPartition
from airmirror.runbooks.failback import differing, returning
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.returning import ReturnRefused, returnable
from airmirror.wire.owners import WHOLE, Change, OrderScope, Owners, Signed, after, changed

SIGNED = Signed("w", 5, 7, "why", "ada")
NAMES = {f"east.{topic}": topic for topic in ("bill", "shop")}


def asked(monkeypatch: pytest.MonkeyPatch, frozen: bool, back: tuple[str, ...], *topics: str) -> list[str]:
    """The topics that may return by an order for ``topics``. ``frozen``: the flow is; ``back``: these came back since."""
    owners = Owners.of(changed(Owners(), Change.FREEZE, [WHOLE], SIGNED, scope=OrderScope.FLOW)) if frozen else Owners()
    for change in (Change.BEGIN, Change.END, Change.FINISH):
        owners = after(owners, changed(owners, change, back, SIGNED, scope=OrderScope.TOPIC))
    monkeypatch.setattr(returning, "owners_now", {"there": owners, "back": Owners()}.__getitem__)

    class Opened(str):
        flow = SimpleNamespace(name="east->west", is_aggregate=False)

    def names(wanted: tuple[str, ...]) -> dict[str, str]:
        return {remote: topic for remote, topic in NAMES.items() if topic in (wanted or NAMES.values())}

    pair: Any = SimpleNamespace(forward=Opened("there"), reverse=Opened("back"), names=names)
    return sorted(returnable(cast(Any, pair), FailbackOrder(reason="why", by="ada", topics=topics)).values())


def test_what_came_back_by_its_name_keeps_nothing_of_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, True, ()) == ["bill", "shop"]
    assert asked(monkeypatch, True, ("bill",)) == ["shop"]
    with pytest.raises(ReturnRefused, match="bill is not frozen"):
        asked(monkeypatch, True, ("bill",), "bill", "shop")
    with pytest.raises(
        ReturnRefused, match="all of it is back, by name; unfreeze the rest: `airmirror flow unfreeze --reason"
    ):
        asked(monkeypatch, True, ("bill", "shop"))
    with pytest.raises(ReturnRefused, match=r"bill is not frozen(.|\n)*shop is not frozen"):
        asked(monkeypatch, False, ())


@pytest.mark.parametrize("accept", [False, True])
def test_what_the_gate_holds_of_topics_that_the_order_does_not_name_stays_held(
    monkeypatch: pytest.MonkeyPatch, accept: bool
) -> None:
    open_ = [SimpleNamespace(topic=topic, key=TopicPartition(topic, 0)) for topic in ("bill", "shop")]
    left = list[object]()
    monkeypatch.setattr(differing, "_differing", lambda *_: [])
    monkeypatch.setattr(
        differing, "judge_unverified", lambda *_, **given: left.append(given["left"]) or SimpleNamespace(verdicts=())
    )
    source = SimpleNamespace(refresh_existing=lambda _: {})
    mirror: Any = SimpleNamespace(index=SimpleNamespace(unverified=lambda: open_), source=source)
    order = FailbackOrder(reason="why", by="ada", topics=("shop",), accept=accept)
    differing.prove(mirror, cast(Any, None), ["shop"], order)
    assert left == [{TopicPartition("bill", 0)}]

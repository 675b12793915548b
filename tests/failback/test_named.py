"""The topics that may return while the whole flow is frozen, and some came back before, by their names; without brokers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from airmirror.cli.failures import BAD_INPUT, status_of
from airmirror.flows import freezing
from airmirror.flows.freezing import StillReturning, check_none_returns
from airmirror.partitions import TopicPartition
from airmirror.runbooks.failback import differing, returning, undo
from airmirror.runbooks.failback.differing import ReturnDiffers
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.pair import NothingReturns
from airmirror.runbooks.failback.returning import LeftOnSource, ReturnRefused, returnable
from airmirror.wire.owners import WHOLE, Change, OrderScope, Owners, Signed, after, changed

SIGNED = Signed("w", 5, 7, "why", "ada")
NAMES = {f"east.{topic}": topic for topic in ("bill", "shop")}


def asked(
    monkeypatch: pytest.MonkeyPatch,
    frozen: bool,
    back: tuple[str, ...],
    *topics: str,
    known: tuple[str, ...] = ("bill", "shop"),
) -> list[str]:
    """The topics that may return by an order for ``topics``. ``frozen``: the flow is; ``back``: these came back since;
    ``known``: something of these was replicated."""
    owners = Owners.of(changed(Owners(), Change.FREEZE, [WHOLE], SIGNED, scope=OrderScope.FLOW)) if frozen else Owners()
    for change in (Change.BEGIN, Change.END, Change.FINISH):
        owners = after(owners, changed(owners, change, back, SIGNED, scope=OrderScope.TOPIC))
    monkeypatch.setattr(returning, "owners_now", {"there": owners, "back": Owners()}.__getitem__)

    class Opened(str):
        flow = SimpleNamespace(name="east->west", is_aggregate=False)
        ledger = SimpleNamespace(state=lambda: SimpleNamespace(known=[(topic, 0) for topic in known]))

    def names(wanted: tuple[str, ...]) -> dict[str, str]:
        return {remote: topic for remote, topic in NAMES.items() if topic in (wanted or NAMES.values())}

    pair: Any = SimpleNamespace(forward=Opened("there"), reverse=Opened("back"), names=names)
    return sorted(returnable(cast(Any, pair), FailbackOrder(reason="why", by="ada", topics=topics)).values())


def test_what_came_back_by_its_name_keeps_nothing_of_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, True, ()) == ["bill", "shop"]
    assert asked(monkeypatch, True, ("bill",)) == ["shop"]
    with pytest.raises(ReturnRefused, match=r"bill is not frozen.*`airmirror flow freeze .* --yes --topic bill --flow"):
        asked(monkeypatch, True, ("bill",), "bill", "shop")
    with pytest.raises(
        ReturnRefused, match="all of it is back, by name; unfreeze the rest: `airmirror flow unfreeze --reason"
    ):
        asked(monkeypatch, True, ("bill", "shop"))
    with pytest.raises(ReturnRefused, match=r"bill is not frozen(.|\n)*shop is not frozen.* --yes --flow"):
        asked(monkeypatch, False, ())
    with pytest.raises(NothingReturns, match="nothing of shop"):  # freezing it would be refused
        asked(monkeypatch, False, (), "shop", known=("bill",))


@pytest.mark.parametrize("accept", [False, True])
def test_what_the_gate_holds_of_topics_that_the_order_does_not_name_stays_held(
    monkeypatch: pytest.MonkeyPatch, accept: bool
) -> None:
    open_ = [SimpleNamespace(topic=topic, key=TopicPartition(topic, 0)) for topic in ("bill", "shop")]
    left = list[object]()
    monkeypatch.setattr(differing, "_differing", lambda *_: [])
    monkeypatch.setattr(
        differing, "verify_committed", lambda *_, **given: left.append(given["left"]) or SimpleNamespace(verdicts=())
    )
    source = SimpleNamespace(refresh_existing=lambda _: {})
    mirror: Any = SimpleNamespace(index=SimpleNamespace(unverified=lambda: open_), source=source)
    order = FailbackOrder(reason="why", by="ada", topics=("shop",), accept=accept)
    differing.prove(mirror, cast(Any, None), ["shop"], order)
    assert left == [{TopicPartition("bill", 0)}]


def test_an_undo_for_a_topic_of_which_the_flow_knows_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """That nothing of it returns any more would be true, while the topic that was meant returns."""
    owners = Owners()
    for change in (Change.FREEZE, Change.BEGIN):
        owners = after(
            owners, changed(owners, change, ["shop"], SIGNED, scope=OrderScope.TOPIC, remote={"shop": "east.shop"})
        )
    ledger = SimpleNamespace(state=lambda: SimpleNamespace(known=[("bill", 0)]), owners=lambda: owners)
    monkeypatch.setattr(undo, "to_put_back", lambda *_: [])
    forward = SimpleNamespace(ledger=ledger, flow=SimpleNamespace(name="east->west"))
    pair: Any = SimpleNamespace(forward=forward, returning=owners.returning_by)
    with pytest.raises(NothingReturns, match="nothing of shpo:") as refused:
        undo._look(pair, cast(Any, None), ["shop", "shpo"])
    assert status_of(refused.value) == BAD_INPUT
    for topics in ([], ["shop"], ["bill"]):  # of bill nothing returns any more: done again, an undo has nothing to do
        undo._look(pair, cast(Any, None), topics)


@pytest.mark.parametrize("topics", [(), ("shop",)])
def test_a_way_out_is_for_the_topics_of_the_order_and_for_no_others(
    monkeypatch: pytest.MonkeyPatch, topics: tuple[str, ...]
) -> None:
    """Copied as it is printed, it would else fail back, accept as lost or undo what the order has left alone."""
    differs = SimpleNamespace(topic="shop", error=SimpleNamespace(transient=False))
    monkeypatch.setattr(differing, "verify_committed", lambda *_, **__: SimpleNamespace(verdicts=(differs,)))
    source = SimpleNamespace(refresh_existing=lambda _: {})
    flow = SimpleNamespace(name="east->west")
    mirror: Any = SimpleNamespace(index=SimpleNamespace(unverified=list), source=source, flow=flow)
    order = FailbackOrder(reason="why", by="ada", topics=topics)
    with pytest.raises(ReturnDiffers) as refused:
        differing.prove(mirror, cast(Any, None), ["shop"], order)
    owners = SimpleNamespace(returning_by=lambda names: {"east.shop": "shop"})
    monkeypatch.setattr(freezing, "owners_now", lambda opened: owners)
    with pytest.raises(StillReturning) as returns:
        check_none_returns(cast(Any, SimpleNamespace(flow=flow)), topics)
    for error in (refused.value, returns.value, LeftOnSource("east->west", (), topics)):
        commands = str(error).split("`")[1::2]
        assert commands and all(("--topic shop" in each) == bool(topics) for each in commands), error

"""What a rescue takes, refuses and leaves, by the topics of its order; without brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.flows import freezing
from airmirror.flows.freezing import StillReturning
from airmirror.runbooks.failback import rescue
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.pair import NothingReturns
from airmirror.runbooks.failback.rescue import FlowNotFrozen
from airmirror.runbooks.failback.runbook import FAILBACK
from airmirror.runbooks.run import run
from airmirror.wire.owners import Owner

FLOW = SimpleNamespace(name="east->west", window=SimpleNamespace(longest_ms=0))


class Begun(Exception):
    """It was not refused."""


def test_a_rescue_that_leaves_records_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    orders, bills = (
        SimpleNamespace(topic=topic, remote_topic=f"east.{topic}", never=SimpleNamespace(records=count))
        for topic, count in (("orders", 2), ("bills", 0))
    )
    after: Any = SimpleNamespace(
        flow="east->west", made_ms=0, apart=(), partitions=[orders, bills], headline="2 records are left"
    )
    monkeypatch.setattr(rescue, "rescue", lambda opened, order, tell: ([], after))
    world: Any = SimpleNamespace(flow=FLOW, forward=None, others=[])
    order = FailbackOrder(reason="why", by="ada")
    assert run(FAILBACK, world, order, ["rescue"]).left == ("rescue",)
    assert run(FAILBACK, world, replace(order, topics=("bills",)), ["rescue"]).left == ()
    after.apart = ["orders"]  # another order has named it
    assert run(FAILBACK, world, order, ["rescue"]).left == ()
    assert run(FAILBACK, world, replace(order, topics=("orders",)), ["rescue"]).left == ("rescue",)
    after.apart = []
    with pytest.raises(NothingReturns, match="nothing of oders"):
        run(FAILBACK, world, replace(order, topics=("oders",)), ["rescue"])
    orders.never.records = 0
    assert run(FAILBACK, world, order, ["rescue"]).left == ()


@pytest.mark.parametrize(("frozen", "topics"), [((), ()), (("orders",), ()), (("orders",), ("orders", "bills"))])
def test_what_windows_copy_is_not_rescued(
    frozen: tuple[str, ...], topics: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Topics that are frozen by their names can be: no window copies them, though the flow is not frozen."""
    owners = SimpleNamespace(whole=None, why_frozen=lambda topic: topic in frozen)
    monkeypatch.setattr(rescue, "owners_now", lambda opened: owners)

    def begins(*_: object, **__: object) -> None:
        raise Begun

    monkeypatch.setattr(rescue, "check_none_returns", begins)
    state = SimpleNamespace(known=[("bills", 0), ("orders", 0)])
    opened: Any = SimpleNamespace(flow=FLOW, ledger=SimpleNamespace(state=lambda: state))
    order = FailbackOrder(reason="why", by="ada", topics=topics)
    with pytest.raises(FlowNotFrozen, match="--yes --topic bills --flow" if topics else "--yes --flow"):
        rescue.rescue(opened, order)
    with pytest.raises(NothingReturns, match="nothing of oders"):  # nor can it be frozen
        rescue.rescue(opened, replace(order, topics=("oders",)))
    owners.whole = Owner.TARGET
    if topics:  # bills came back by its name
        with pytest.raises(FlowNotFrozen, match=r"bills of flow .* is not frozen.* --yes --topic bills --flow"):
            rescue.rescue(opened, order)
    owners.whole = None
    if frozen:
        with pytest.raises(Begun):
            rescue.rescue(opened, replace(order, topics=frozen))


@pytest.mark.parametrize("meanwhile", ["unfrozen", "returning"])
def test_what_came_before_its_lease_counts(meanwhile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unfrozen meanwhile, the next window would copy what it has rescued once more."""
    owners = SimpleNamespace(whole=Owner.TARGET, returning_by=lambda topics: {})
    for module in (rescue, freezing):
        monkeypatch.setattr(module, "owners_now", lambda opened: owners)

    @contextmanager
    def overtaking(*_: object) -> Iterator[None]:
        if meanwhile == "unfrozen":
            owners.whole = None
        else:
            owners.returning_by = lambda topics: {"east.orders": "orders"}
        yield

    monkeypatch.setattr(rescue, "overtaking", overtaking)
    monkeypatch.setattr(rescue, "Routes", lambda *_: nullcontext())

    def begins(*_: object) -> None:
        raise Begun

    monkeypatch.setattr(rescue, "failback_plan", begins)
    ledger = SimpleNamespace(state=lambda: SimpleNamespace(known=[("orders", 0)]))
    opened: Any = SimpleNamespace(flow=SimpleNamespace(name="east->west", source=None), ledger=ledger)
    with pytest.raises(FlowNotFrozen if meanwhile == "unfrozen" else StillReturning):
        rescue.rescue(opened, FailbackOrder(reason="why", by="ada"))

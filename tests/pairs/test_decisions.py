"""Every refusal of the tables of pairs, and every order, as the product decides it without clusters."""

from __future__ import annotations

import pytest

from airmirror.runbooks import written
from airmirror.runbooks.failback.returning import ReturnRefused
from pairs import deciding
from pairs.conditions import CONDITIONS
from pairs.deciding import decided
from pairs.facts import STANDING, UNKNOWN, as_things_are
from pairs.table import ALONE, MEETS, PAIRS, PROCEDURES

KNOWN = [condition for condition in CONDITIONS if condition not in UNKNOWN]


@pytest.mark.parametrize("state", STANDING)
def test_what_an_order_meets_where_another_one_stands(state: str) -> None:
    assert {order: decided(order, STANDING[state], PAIRS["nothing", order]) for order in MEETS} == {
        order: PAIRS[state, order] for order in MEETS
    }


@pytest.mark.parametrize("condition", KNOWN)
def test_what_an_order_meets_as_things_are(condition: str) -> None:
    """Whether MirrorMaker 2 has copied anything, clusters alone tell."""
    orders = [order for order in PROCEDURES if order != "take-over"]
    for order in orders:
        assert as_things_are(condition, order) != as_things_are("", order), "the same is asked elsewhere"
    assert {order: decided(order, as_things_are(condition, order)) for order in orders} == {
        order: ALONE[condition, order] for order in orders
    }


def test_a_return_that_can_not_begin_is_refused_before_anything_is_cut_over(monkeypatch: pytest.MonkeyPatch) -> None:
    facts, steps = as_things_are("aggregate", "migration with a return"), list[str]()
    deciding.no_clusters(monkeypatch, facts, [])
    monkeypatch.setattr(deciding.migration_steps, "take", lambda step, *_: steps.append(step))
    with pytest.raises(ReturnRefused):
        deciding.DECISIONS["migration with a return"](facts)
    assert not steps


@pytest.mark.parametrize("order", ["undo of a failover", "undo of a migration"])
def test_other_writers_of_an_aggregate_keep_nobody_from_an_undo(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They write between the flow's records; and nothing of an aggregate can be failed back instead."""
    facts = as_things_are("aggregate", order)
    deciding.no_clusters(monkeypatch, facts, [])
    for undoing in (deciding.failover_undo, deciding.migration_undo):
        monkeypatch.setattr(undoing, "written_since", written.written_since)
    assert not deciding.DECISIONS[order](facts), "something was undone"

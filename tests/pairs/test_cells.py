"""Every cell of the tables of pairs, on brokers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from airmirror.errors import AirmirrorError
from airmirror.flows import leases
from airmirror.runbooks.takeover import copies
from airmirror.runbooks.takeover.stop import await_stopped
from pairs.conditions import CONDITIONS, PREPARED, WRITTEN_BEFORE
from pairs.estate import NAMED, ORDERS, STATES, Estate, build
from pairs.facts import STANDING
from pairs.proofs import PROOFS
from pairs.table import ALONE, MEETS, PAIRS, PROCEDURES, refusal
from support.sides import Sides
from support.waiting import short_waits

__all__ = ["short_waits"]
pytestmark = pytest.mark.long


class Estates:
    """The estate where a procedure stands: one for all orders that leave it as it is."""

    def __init__(self, sides: Sides, directory: Path) -> None:
        self._sides, self._directory, self._state = sides, directory, ""
        self._estate: Estate | None = None

    def new(self, **built: Any) -> Estate:
        self._state = ""
        return build(self._sides, self._directory, **built)

    def where(self, state: str) -> Estate:
        """Return one where the procedure stands."""
        if self._estate is None or self._state != state:
            self._estate = self.new(**STATES[state].built)
            STATES[state].bring(self._estate)
            self._state = state
        return self._estate

    def is_altered(self) -> None:
        """Hear that it is not as it was."""
        self._state = ""


@pytest.fixture(scope="module")
def estates(apart: Sides, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estates]:
    yield Estates(apart, tmp_path_factory.mktemp("pairs"))
    apart.empty()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease that is taken is asked for soon again, and a MirrorMaker 2 that was never there is believed to be stopped."""
    monkeypatch.setattr(copies, "await_stopped", partial(await_stopped, still=0.1))
    monkeypatch.setattr(leases, "FIRST_SECONDS", 0.05)


def outcome(order: str, estate: Estate) -> str:
    """The error by which an order is refused, ``-`` where there was nothing to do, else ``+``."""
    try:
        return "-" if ORDERS[order](estate) else "+"
    except AirmirrorError as error:
        print(error)
        return refusal(error)


@pytest.mark.parametrize("order", MEETS)
@pytest.mark.parametrize("state", STATES)
def test_a_procedure_where_another_one_stands(estates: Estates, state: str, order: str) -> None:
    estate = estates.where(state)
    before, owners = estate.everything, estate.owners
    others = [
        topic
        for topic in estate.names
        if topic != estate.of_order(order) and (order in NAMED or owners.is_apart(topic))
    ]
    theirs = {topic: estate.of(topic) for topic in others}
    assert estate.shape == STANDING[state].shape, "what is asked without brokers is what is so"
    found, expected = outcome(order, estate), PAIRS[state, order].replace(">", "+")
    if found != expected or (found == "+" and order in PROOFS):
        estates.is_altered()
    assert found == expected
    if found != "+" or order not in PROOFS:
        assert estate.everything == before
        return
    assert {topic: estate.of(topic) for topic in others} == theirs, "an order changes nothing that it does not name"
    PROOFS[order](estate)


@pytest.mark.parametrize("order", PROCEDURES)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_procedure_as_things_are(estates: Estates, condition: str, order: str) -> None:
    its = CONDITIONS[condition]
    estate = estates.new(**its.built, by_mirrormaker=order == "take-over")
    its.before(estate)
    if state := {**PREPARED, **its.prepared}.get(order):
        STATES[state].bring(estate)
    if order in WRITTEN_BEFORE:
        estate.write(estate.both.west, estate.shop)
    with its.meanwhile(estate, order):
        before = estate.everything
        found = outcome(order, estate)
        after = estate.everything
    assert found == ALONE[condition, order].replace(">", "+")
    if found == "+" and order in PROOFS:
        PROOFS[order](estate)
    elif order != "failback":  # which has let records return, before it waits for applications to stop
        assert after == before

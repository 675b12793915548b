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
from airmirror.runbooks.takeover.copies import await_stopped
from pairs.conditions import CONDITIONS, PREPARED, WRITTEN_BEFORE
from pairs.estate import NAMED, ORDERS, STATES, Estate, build
from pairs.facts import STANDING
from pairs.proofs import NEW, PROOFS
from pairs.table import ALONE, DONE, MEETS, PAIRS, PROCEDURES, refusal, sign
from support.groups import committed
from support.sides import Sides
from support.waiting import short_waits

__all__ = ["short_waits"]
pytestmark = pytest.mark.long

# Where no rehearsal sees what refuses a failover: it waits for no application, and runs no last window.
UNSEEN = ("open", "hand-back")


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
    for side in (apart.east, apart.west):
        committed(side, "any")  # the coordinators of groups have begun
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


def prove(order: str, estate: Estate, place: str, failover: str) -> None:
    """Look at what came of an order that was carried out; ``failover``: what comes of a failover at that place of the table."""
    if order == "rehearsal":
        rehearsed = estate.rehearsals[-1]
        assert rehearsed.is_good is (failover in DONE or place in UNSEEN), rehearsed.problems
    else:
        PROOFS[order](estate)


@pytest.mark.parametrize("order", MEETS)
@pytest.mark.parametrize("state", STATES)
def test_a_procedure_where_another_one_stands(estates: Estates, state: str, order: str) -> None:
    estate = estates.where(state)
    if order == "window":  # there is something to copy, also of what it must leave alone
        estates.is_altered()
        estate.write(estate.both.east, estate.shop, estate.bill, first=NEW)
    before, owners = estate.everything, estate.owners
    others = [
        topic
        for topic in estate.names
        if topic != estate.of_order(order) and (order in NAMED or owners.is_apart(topic))
    ]
    theirs = {topic: estate.of(topic) for topic in others}
    assert estate.shape == STANDING[state].shape, "what is asked without brokers is what is so"
    found = sign(outcome(order, estate), order, owners, estate.of_order(order), PAIRS["nothing", order])
    is_unchanged = found not in DONE or order == "rehearsal"
    if found != PAIRS[state, order] or not is_unchanged:
        estates.is_altered()
    assert found == PAIRS[state, order]
    if is_unchanged:
        assert estate.everything == before
    assert {topic: estate.of(topic) for topic in others} == theirs, "an order changes nothing that it does not name"
    if found in DONE:
        prove(order, estate, state, PAIRS[state, "failover"])


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
    with its.meanwhile(estate, order) as has_ended:
        before, owners = estate.everything, estate.owners
        found = outcome(order, estate)
        after, ends = estate.everything, has_ended()
    assert not ends or found in DONE or order == "take-over", "a window is ended for nothing"
    assert sign(found, order, owners, estate.of_order(order), ends=ends) == ALONE[condition, order]
    if found not in DONE or order == "rehearsal":
        # This failback has let records return, before it waits for the transaction to end.
        assert after == before or (condition, order) == ("open", "failback")
    if found in DONE:
        prove(order, estate, condition, ALONE[condition, "failover"])

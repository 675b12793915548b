"""The protocol holds in every state of the quick scopes, and every rule that is taken away is missed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from model.protocol import Scope
from model.scopes import BROKEN, CLOCKS, DEEP, FEWER, PACKED, QUICK, RULES, TWO, UNPOLITE, explored

pytestmark = pytest.mark.timeout(900)

LARGE = {scope.name for scope in (CLOCKS, FEWER, TWO)}  # more than 10,000 states each
MILLIONS = {"three windows"}  # of states: `make model` explores them all


def cases(scopes: Iterable[Scope]) -> list[Any]:
    """All states of the large ones are for ``make test-all``; ``make test`` looks there for what is put back."""
    return [pytest.param(each, id=each.name, marks=slow(each, pytest.mark.long)) for each in scopes]


def slow(scope: Scope, mark: pytest.MarkDecorator = pytest.mark.seconds) -> list[pytest.MarkDecorator]:
    """Marked where the scope is large; by itself as what ``make test QUICK=yes`` leaves out."""
    return [mark] if scope.name in LARGE else []


@pytest.mark.parametrize("scope", cases(QUICK))
def test_every_state_is_right(scope: Scope) -> None:
    found = explored(scope, RULES)
    assert found.whole, str(found)
    assert found.states > 100


@pytest.mark.parametrize(
    "scope", cases((TWO, replace(FEWER, terms=0), replace(PACKED, slots=(2, 1), terms=0, aggregate=True)))
)
def test_what_is_copied_is_right_where_nobody_waits_for_a_lease(scope: Scope) -> None:
    """The lease is a courtesy: who holds it by mistake costs a window, and no record."""
    found = explored(replace(scope, faults=()), UNPOLITE)
    assert found.whole, str(found)


@pytest.mark.parametrize("name", [pytest.param(name, id=name, marks=slow(BROKEN[name][0])) for name in BROKEN])
def test_what_is_put_back_is_found(name: str) -> None:
    scope, rules, wrong = BROKEN[name]
    found = explored(scope, rules)
    assert found.wrong.startswith(wrong), str(found)
    assert found.way


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scope", [scope for scope in DEEP if scope not in QUICK], ids=lambda scope: scope.name)
def test_every_state_of_the_deep_scopes_is_right(scope: Scope) -> None:
    found = explored(scope, RULES, 1_000_000)
    assert not found.wrong and found.whole == (scope.name not in MILLIONS), str(found)

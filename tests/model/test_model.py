"""The protocol holds in every state of the quick scopes, and every rule that is taken away is missed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model.explore import explore
from model.protocol import Scope
from model.scopes import BROKEN, DEEP, PACKED, QUICK, RULES, TWO, UNPOLITE

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("scope", QUICK, ids=lambda scope: scope.name)
def test_every_state_is_right(scope: Scope) -> None:
    found = explore(scope, RULES)
    assert found.whole, str(found)
    assert found.states > 100


@pytest.mark.parametrize(
    "scope", (TWO, replace(PACKED, slots=(2, 1), leases=0, aggregate=True)), ids=lambda scope: scope.name
)
def test_what_is_copied_is_right_where_nobody_waits_for_a_claim(scope: Scope) -> None:
    """The claim is a courtesy: who holds it by mistake costs a window, and no record."""
    found = explore(replace(scope, faults=()), UNPOLITE)
    assert found.whole, str(found)


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_put_back_is_found(name: str) -> None:
    scope, rules, wrong = BROKEN[name]
    found = explore(scope, rules)
    assert found.wrong.startswith(wrong), str(found)
    assert found.way


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scope", [scope for scope in DEEP if scope not in QUICK], ids=lambda scope: scope.name)
def test_every_state_of_the_deep_scopes_is_right(scope: Scope) -> None:
    found = explore(scope, RULES, 1_000_000)
    assert not found.wrong, str(found)

"""Nobody writes for a topic that is not his own, in any order of steps; and each rule that is taken away is missed."""

from __future__ import annotations

import pytest

from model.owner_scopes import BROKEN, scopes
from model.owners import Rules, explore


@pytest.mark.parametrize("name", scopes(Rules()))
def test_nobody_writes_for_what_is_not_his_own(name: str) -> None:
    states, wrong, way = explore(scopes(Rules())[name], Rules())
    assert not wrong, (wrong, way)
    assert states > 10


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_put_back_is_found(name: str) -> None:
    rules, scope, wrong = BROKEN[name]
    _, found, way = explore(scopes(rules)[scope], rules)
    assert found.startswith(wrong) and way, found

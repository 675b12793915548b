"""Brokers on which positions that are written ahead may break a streams group, told by what they support."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.clusters.protocol.groups import may_break


@pytest.mark.parametrize(
    ("levels", "told"),
    [((25,), False), ((26,), True), ((29,), True), ((30,), False), ((30, 29), True), ((), False)],
)
def test_brokers_of_4_1_and_4_2_may(levels: tuple[int, ...], told: bool) -> None:
    """4.0 has no such groups, 4.3 has the mend, and of 4.2 nothing tells whether it is 4.2.1."""
    routes: Any = SimpleNamespace(
        refresh=lambda _topics: None,
        nodes=range(len(levels)),
        connection=lambda node: SimpleNamespace(supported={"metadata.version": levels[node]}),
    )
    assert may_break(routes) is told

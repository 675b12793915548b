"""What of a cluster this user may not see is told, and holds up nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from airmirror.clusters.protocol.groups import GroupsNotRead
from airmirror.runbooks.migration import inventory

DENIED, LOADING = 30, 14


@pytest.mark.parametrize("count", [0, 1, 250])
def test_denied_groups_hold_up_no_other(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def committed_offsets(_: object, names: Sequence[str]) -> dict[str, dict[Any, Any]]:
        asked.append(len(names))
        if hidden := next((name for name in names if name.startswith("hidden")), None):
            raise GroupsNotRead("east", hidden, DENIED)
        return {name: {} for name in names}

    monkeypatch.setattr(inventory, "committed_offsets", committed_offsets)
    hidden = [f"hidden-{number}" for number in range(count)]
    names = [*hidden, *(f"group-{number}" for number in range(1000))]
    found, refused = inventory._committed(None, names)  # type: ignore[arg-type]
    assert len(found) == 1000 and sorted(refused) == sorted(hidden)
    assert all("DESCRIBE" in reason for reason in refused.values())
    assert len(asked) <= 13 + (count + 100 if count else 0), "one by one only where one is denied"


def test_a_coordinator_that_is_loading_is_no_denial(monkeypatch: pytest.MonkeyPatch) -> None:
    def committed_offsets(_: object, names: Sequence[str]) -> dict[str, dict[Any, Any]]:
        raise GroupsNotRead("east", names[0], LOADING)

    monkeypatch.setattr(inventory, "committed_offsets", committed_offsets)
    with pytest.raises(GroupsNotRead):
        inventory._committed(None, ["group"])  # type: ignore[arg-type]

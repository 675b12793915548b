"""Groups that the target's brokers do not list, and where they stand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from airmirror.clusters.protocol.groups import Committed, Group, Offsets
from airmirror.offsets import groups
from airmirror.offsets.groups import sync_group_offsets
from airmirror.offsets.positions import GroupPosition
from airmirror.offsets.replicated import Extent
from airmirror.offsets.translation import Reason, Translated
from airmirror.windows.fence import HeldLease

ROW = GroupPosition("billing", "orders", 0, Committed(5), "east.orders", Translated(5, 5), target=Extent(0, 9))
FLOW = cast(Any, SimpleNamespace(name="east->west", settings=SimpleNamespace(window_max_lag_blocks="")))


@pytest.mark.parametrize("listed", [{"billing": Group("billing", "Empty")}, {}])
def test_a_group_that_is_not_listed_is_not_moved_back(
    monkeypatch: pytest.MonkeyPatch, listed: dict[str, Group]
) -> None:
    """A coordinator that was just started lists none of its groups for a moment, and names no error."""
    written: dict[str, Offsets] = {}
    monkeypatch.setattr(groups, "group_positions", lambda _mirror, _only: [ROW])
    monkeypatch.setattr(groups, "held_back", lambda _mirror, rows: rows)
    monkeypatch.setattr(groups, "list_groups", lambda _routes: listed)
    monkeypatch.setattr(
        groups, "committed_offsets", lambda _, names: {each: {ROW.remote: Committed(7)} for each in names}
    )
    monkeypatch.setattr(groups, "settled", lambda _mirror, look: look())
    monkeypatch.setattr(groups, "_shut", lambda *_: {})
    monkeypatch.setattr(groups, "commit_offsets", lambda _routes, offsets: written.update(offsets) or {})
    held = HeldLease(cast(Any, SimpleNamespace(target=None)), lambda: None)
    [done] = sync_group_offsets(FLOW, cast(Any, None), ["billing"], under=held)
    assert (written, done.reason) == ({}, Reason.AHEAD)

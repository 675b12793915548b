"""The index reads what is new in a flow's internal topics, without brokers: two logs that tests write."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from airmirror.ledger import LedgerBegunAnew
from airmirror.windows import index


def test_an_index_that_others_begin_anew_is_named_by_its_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its source's alias is no flow: the command that the error names would find none."""
    monkeypatch.setattr(index, "_read_tails", lambda *_: {})
    behind = SimpleNamespace(flow="east->west", state=lambda: SimpleNamespace(reaches=lambda _ends: False))
    with pytest.raises(LedgerBegunAnew, match="airmirror ledger rebuild --flow 'east->west'"):
        index.catch_up(cast(Any, None), cast(Any, behind), "east")

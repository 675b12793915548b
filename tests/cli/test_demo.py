"""The demo's proof: every record that was produced is equal on both sides, and nothing else is there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airmirror.cli.demo import _doubts
from airmirror.flows.verification import ComparedPartition
from airmirror.slot.contract import Outcome
from airmirror.slot.errors import ForeignRecords
from airmirror.windows.errors import GateFailed
from airmirror.windows.results import Row, WindowResult

ROW = Row("flights", 0, "east.flights", 0, 10, 0, 10, 10, 0, 0, 0, 0, 100, 0, True, Outcome.DONE, None)
GOOD = WindowResult("east->west", "w", (ROW,), 1, 1.0, {}, False)
EQUAL = ComparedPartition("flights", 0, "east.flights", 10, 0, 0, ())
FOREIGN = ForeignRecords("east", "flights", 0, "west", "east.flights", 11, 12)


@pytest.mark.parametrize(
    ("result", "row", "produced", "said"),
    [
        (GOOD, EQUAL, 10, []),
        (GOOD, EQUAL, 11, ["11 records were produced, 10 are equal"]),
        (GOOD, replace(EQUAL, records=9, expired=1), 10, ["10 records were produced, 9", "windows copied 10 records, 9"]),
        (GOOD, replace(EQUAL, errors=(FOREIGN,)), 10, ["that this flow did not write"]),
        (replace(GOOD, rows=(replace(ROW, verified=False),)), EQUAL, 10, ["w is not verified"]),
        (replace(GOOD, rows=(replace(ROW, copied=12),)), EQUAL, 10, ["windows copied 12 records, 10"]),
        (replace(GOOD, rows=(replace(ROW, error=GateFailed("east", "flights", 0, 0, 9, "why")),)), EQUAL, 10, ["not verified"]),
    ],
)  # fmt: skip
def test_what_is_not_proven_is_said(
    result: WindowResult, row: ComparedPartition, produced: int, said: list[str]
) -> None:
    doubts = list(_doubts([result], [row], {"flights": produced}))
    assert len(doubts) == len(said) and all(part in doubt for part, doubt in zip(said, doubts, strict=True)), doubts

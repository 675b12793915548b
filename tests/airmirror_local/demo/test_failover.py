"""The proof of `make demo ONLY=failover`: every acknowledged record is where it must be, once, and was read once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airmirror_local.demo.failover import FailoverRun, doubts, summary
from support import ROOT

REPLICATED, NEVER = "tills.east-2", "tills.east-4"  # records of `orders`: tills write there with every second one
OVER, AFTER = "tills.west-2", "tills.east-again-2"
EAST = [REPLICATED, NEVER, OVER, AFTER]
GOOD: dict[str, Any] = {
    "before": [REPLICATED, NEVER],
    "over": [OVER],
    "after": [AFTER],
    "east": {("orders", 0): EAST},
    "west": {("orders", 0): [REPLICATED, OVER, AFTER]},
    "rescued": {("orders", 0): [NEVER]},
    "read": {"billing": [REPLICATED, REPLICATED, OVER, AFTER], "shipping": [OVER, AFTER]},
    "returned": 1,
}


def test_everything_is_there_and_what_was_read_twice_before_the_failover_is_no_doubt() -> None:
    assert list(doubts(FailoverRun(**GOOD))) == []
    assert "4 records were acknowledged" in summary(FailoverRun(**GOOD)) and "1 record without a copy" in summary(
        FailoverRun(**GOOD)
    )


WRONG: dict[str, Callable[[], dict[str, Any]]] = {
    "on west, or rescued: 1 records are missing, the first is tills.east-4": lambda: {
        "rescued": {("orders", 0): ["tills.east-6"]}
    },
    "on west, or rescued: 1 records are there twice, or of nobody, the first is tills.east-2": lambda: {
        "rescued": {("orders", 0): [REPLICATED, NEVER]}
    },
    "on east: 1 records are missing, the first is tills.west-2": lambda: {
        "east": {("orders", 0): [REPLICATED, NEVER, AFTER]}
    },
    "on east: tills.east-4 lies there twice": lambda: {"east": {("orders", 0): EAST, ("orders", 1): [NEVER]}},
    "west: orders-0: tills.west-2 lies after tills.west-4": lambda: {
        "over": [OVER, "tills.west-4"],
        "east": {("orders", 0): [*EAST, "tills.west-4"]},
        "west": {("orders", 0): [REPLICATED, "tills.west-4", OVER, AFTER]},
        "read": {"billing": [OVER, "tills.west-4", AFTER], "shipping": [OVER, "tills.west-4", AFTER]},
    },
    "group billing: 1 records are there twice, or of nobody, the first is tills.west-2": lambda: {
        "read": {"billing": [OVER, OVER, AFTER], "shipping": [OVER, AFTER]}
    },
    "nothing was written before": lambda: {"returned": 0},
}


@pytest.mark.parametrize("doubt", WRONG)
def test_what_is_not_proven_is_said(doubt: str) -> None:
    [found] = doubts(FailoverRun(**GOOD | WRONG[doubt]()))
    assert doubt in found


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_real_one_proves_itself() -> None:
    program = Path(sys.executable).with_name("airmirror")
    command = [program, "demo", "--failover", "--seconds", "5"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "were rescued" in done.stdout and "not proven" not in done.stdout

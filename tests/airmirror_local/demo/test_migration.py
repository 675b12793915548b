"""The proof of `make demo ONLY=migration`: all records are on both sides once, in order, and each group read each once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airmirror_local.demo.migration import MigrationRun, doubts, summary
from airmirror_local.demo.shop import topic_of
from support import ROOT

ORDERS, STOCK = ["tills.east-2", "tills.west-2"], ["tills.east-1", "scales.east-1"]
GOOD: dict[str, Any] = {
    "acknowledged": {"orders": ORDERS, "stock": STOCK},
    "here": {("orders", 0): ORDERS, ("stock", 0): STOCK},
    "there": {("orders", 0): ORDERS, ("stock", 0): STOCK},
    "read": {"billing": ORDERS, "shipping": [*STOCK, *ORDERS]},
    "named": ["stock-0 grew from 1 to 2, by a producer"],
}


def test_a_value_tells_its_topic() -> None:
    assert [topic_of(each) for each in (*ORDERS, *STOCK)] == ["orders", "orders", "stock", "stock"]
    assert topic_of("checkout.west-7") == "payments"


def test_everything_is_there_and_was_read_once() -> None:
    assert list(doubts(MigrationRun(**GOOD))) == []
    assert "4 records were acknowledged" in summary(MigrationRun(**GOOD))


WRONG: dict[str, Callable[[], dict[str, Any]]] = {
    "east, orders: 1 records are missing, the first is tills.west-2": lambda: {
        "here": {("orders", 0): ORDERS[:1], ("stock", 0): STOCK}
    },
    "west, stock: 1 records are missing, the first is scales.east-1": lambda: {
        "there": {("orders", 0): ORDERS, ("stock", 0): STOCK[:1]}
    },
    "west, orders-0: tills.east-2 lies after tills.east-4": lambda: {
        "acknowledged": {"orders": ["tills.east-2", "tills.east-4"]},
        "here": {("orders", 0): ["tills.east-2", "tills.east-4"]},
        "there": {("orders", 0): ["tills.east-4", "tills.east-2"]},
        "read": {},
    },
    "group billing: 1 records are there twice, or of nobody, the first is tills.west-2": lambda: {
        "read": {"billing": [*ORDERS, ORDERS[1]]}
    },
    "group shipping: 1 records are missing, the first is scales.east-1": lambda: {
        "read": {"shipping": [*ORDERS, STOCK[0]]}
    },
    "nobody was named": lambda: {"named": ()},
}


@pytest.mark.parametrize("doubt", WRONG)
def test_what_is_not_proven_is_said(doubt: str) -> None:
    [found] = doubts(MigrationRun(**GOOD | WRONG[doubt]()))
    assert doubt in found


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_real_one_proves_itself() -> None:
    program = Path(sys.executable).with_name("airmirror")
    command = [program, "demo", "--migration", "--seconds", "5"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "of transactional id checkout.east" in done.stdout and "not proven" not in done.stdout

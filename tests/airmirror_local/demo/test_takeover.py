"""The proof of `make demo ONLY=takeover`: every record is there, and twice only what MirrorMaker 2 has copied twice."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airmirror.evidence.found import Difference, Kind
from airmirror.evidence.rows import ComparedLogs
from airmirror.partitions import TopicPartition
from airmirror.runbooks.takeover.copies import Continued
from airmirror.slot.errors import SourceCorrupt
from airmirror_local.demo.takeover import TakeoverRun, doubts, summary
from support import ROOT

TWICE = Difference(Kind.TWICE, source_offset=5, target_offset=12, count=3)
LOGS = ComparedLogs(
    topic="stocks",
    remote_topic="east.stocks",
    partition=0,
    counts={Kind.EQUAL: 20, Kind.TWICE: 3},
    differences=(TWICE,),
)
TAKEN = Continued(
    topic="stocks",
    partition=0,
    remote_topic="east.stocks",
    recorded=3,
    since=4,
    start=10,
    end=12,
    copied=6,
    again=3,
    error=None,
)
GOOD: dict[str, Any] = {
    "taken": [[TAKEN], [TAKEN]],
    "windows": 2,
    "copied": 10,
    "handed_back": 1,
    "produced": {"stocks": 20},
    "compared": (LOGS,),
    "ours": {TopicPartition("stocks", 0): [(15, 25)]},
}


def test_everything_is_there_and_the_copies_made_twice_are_listed() -> None:
    course = TakeoverRun(**GOOD)
    assert list(doubts(course)) == []
    told = list(summary(course))
    assert "2 windows copied 10 records" in told[0] and "12 records of MirrorMaker 2's" in told[0]
    assert told[1] == "copied twice by MirrorMaker 2: east.stocks-0, offsets 12 to 14"


WRONG: dict[str, Callable[[], dict[str, Any]]] = {
    "21 records were produced": lambda: {"produced": {"stocks": 21}},
    "1 record: missing": lambda: {"compared": (replace(LOGS, counts={Kind.EQUAL: 20, Kind.MISSING: 1}),)},
    "a window copied target offset 12 twice": lambda: {"ours": {TopicPartition("stocks", 0): [(10, 13)]}},
    "1 take-overs": lambda: {"taken": [[TAKEN]]},
    "stocks-0: cluster 'east'": lambda: {
        "compared": (replace(LOGS, error=SourceCorrupt("east", "stocks", 0, 1, "?")),)
    },
    "it went wrong": lambda: {"wrong": ["it went wrong"]},
}


@pytest.mark.parametrize("doubt", WRONG)
def test_what_is_not_proven_is_said(doubt: str) -> None:
    [found] = doubts(TakeoverRun(**GOOD | WRONG[doubt]()))
    assert doubt in found


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_real_one_proves_itself() -> None:
    program = Path(sys.executable).with_name("airmirror")
    command = [program, "demo", "--take-over", "--seconds", "5"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Taken over twice: " in done.stdout and "not proven" not in done.stdout
    assert "MirrorMaker 2 is stopped: MirrorMaker 2 at 127.0.0.1, of group 'east-mm2'" in " ".join(done.stdout.split())

"""The demo's proof: every record that was produced is equal on both sides, and nothing else is there."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from airmirror.cli.main import app
from airmirror.clusters.admin.appender import Appender
from airmirror.flows.verification import ComparedPartition
from airmirror.naming import mapping_topic
from airmirror.slot.contract import Outcome
from airmirror.slot.errors import ForeignRecords
from airmirror.windows.errors import GateFailed
from airmirror.windows.following import Followed
from airmirror.windows.results import Row, WindowResult
from airmirror.wire.mappings import Hold
from airmirror_local.brokers import Broker
from airmirror_local.demo import mirror as demo
from airmirror_local.demo.mirror import _doubts
from airmirror_local.demo.report import Reported, report_demo
from airmirror_local.processes import ProcessFailed
from support import ROOT
from support.flows import mirror
from support.topics import Record, produce

ROW = Row(
    topic="flights",
    partition=0,
    remote_topic="east.flights",
    source_start=0,
    source_end=10,
    target_start=0,
    target_end=10,
    copied=10,
    control=0,
    aborted=0,
    holes=0,
    lost=0,
    bytes=100,
    lag=0,
    verified=True,
    outcome=Outcome.DONE,
    error=None,
)
GOOD = WindowResult(flow="east->west", window="w", rows=(ROW,), partitions=1, seconds=1.0, phases={}, is_cut=False)
EQUAL = ComparedPartition(
    topic="flights", partition=0, remote_topic="east.flights", records=10, expired=0, lost=0, errors=()
)
FOREIGN = ForeignRecords(
    cluster="east", topic="flights", partition=0, target="west", remote_topic="east.flights", first=11, last=12
)
REPORTED = Reported(Path("r.html"), Path("r.json"), Path("public.pem"), ("sound: r.json, and 0 reports before it",))


@pytest.mark.parametrize(
    ("result", "row", "produced", "said"),
    [
        (GOOD, EQUAL, 10, []),
        (GOOD, EQUAL, 11, ["11 records were produced, 10 are equal"]),
        (
            GOOD,
            replace(EQUAL, records=9, expired=1),
            10,
            ["10 records were produced, 9", "windows copied 10 records, 9"],
        ),
        (GOOD, replace(EQUAL, errors=(FOREIGN,)), 10, ["that this flow did not write"]),
        (replace(GOOD, rows=(replace(ROW, verified=False),)), EQUAL, 10, ["w is not verified"]),
        (replace(GOOD, rows=(replace(ROW, copied=12),)), EQUAL, 10, ["windows copied 12 records, 10"]),
        (
            replace(
                GOOD,
                rows=(
                    replace(
                        ROW,
                        error=GateFailed(cluster="east", topic="flights", partition=0, first=0, last=9, reason="why"),
                    ),
                ),
            ),
            EQUAL,
            10,
            ["not verified"],
        ),
    ],
)
def test_what_is_not_proven_is_said(
    result: WindowResult, row: ComparedPartition, produced: int, said: list[str]
) -> None:
    doubts = list(_doubts([result], [row], {"flights": produced}))
    assert len(doubts) == len(said) and all(part in doubt for part, doubt in zip(said, doubts, strict=True)), doubts


@dataclass
class Staged:
    """A demo without the stack: what its parts would have found, and where its files lay."""

    found: tuple[Any, ...] | Exception
    directories: list[Path] = field(default_factory=list)

    @contextmanager
    def running_stack(
        self, directory: Path, *, step: Callable[[str], AbstractContextManager[None]], **_: Any
    ) -> Iterator[Any]:
        self.directories.append(directory)
        with step("starting what is staged"):
            if isinstance(self.found, Exception):
                raise self.found
        yield type("Stack", (), {"loaded": {"flights": 8}})


@pytest.mark.parametrize(
    ("found", "status", "said"),
    [
        (([GOOD], [EQUAL], {"flights": 2}, [], REPORTED), 0, "10 records were produced, 2 of them"),
        (([GOOD], [EQUAL], {"flights": 2}, [], REPORTED), 0, "sound: r.json, and 0 reports before it"),
        (
            ([GOOD], [EQUAL], {"flights": 3}, [], REPORTED),
            1,
            "not proven flights: 11 records were produced, 10 are equal",
        ),
        (([GOOD], [EQUAL], {"flights": 2}, ["run 3, verify_window failed:\nwhy"], REPORTED), 1, "verify_window failed"),
        (([GOOD], [EQUAL], {"flights": 2}, [], replace(REPORTED, doubts=("altered",))), 1, "not proven altered"),
        (ProcessFailed("broker", "ended with status 1", Path("log"), "out of memory"), 1, "out of memory"),
    ],
    ids=["proven", "its report is sound", "a record is missing", "a run failed", "its report is not", "a broker ended"],
)
def test_its_exit_status_is_the_proof(
    monkeypatch: pytest.MonkeyPatch, found: tuple[Any, ...] | Exception, status: int, said: str
) -> None:
    staged, printed = Staged(found), StringIO()
    monkeypatch.setattr(demo, "running_stack", staged.running_stack)
    monkeypatch.setattr(demo, "_mirror", lambda *_: (*found, Followed(7, 0.25, 0.5)))  # type: ignore[misc]
    assert demo.run_demo(Console(file=printed, width=10_000), 1) == status
    assert said in printed.getvalue()
    assert ("Followed: 7 records" in printed.getvalue()) is not isinstance(found, Exception)
    assert f"{'✗' if isinstance(found, Exception) else '✓'} starting what is staged" in printed.getvalue()
    assert not any(directory.exists() for directory in staged.directories) and staged.directories


def test_it_ends_with_a_report_that_its_own_command_finds_sound(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, [Record(b"one"), Record(b"two")])
    flow.run()
    for _ in range(2):  # the next demo takes the place of the last one's
        reported = report_demo(flow.opened, tmp_path / "report")
        assert reported.doubts == () and "<h1>2 records were copied" in reported.html.read_text()
        report, check, _, sound = reported.lines()
        assert str(reported.html) in report and sound.startswith("sound: ")
        words = shlex.split(check.split("`")[1])
        done = CliRunner().invoke(app, words[1:])
        assert words[0] == "airmirror" and done.exit_code == 0 and sound in done.stdout, done.output
    hold = Hold(topic=flow.topic, partition=0, offset=0, reason="why", window="w", by="gate", time_ms=1)
    with Appender(flow.flow.target, mapping_topic(flow.flow.source.alias)) as appender:
        appender.append([(hold.encode_key(), hold.encode_value())])
    (doubt,) = report_demo(flow.opened, tmp_path / "report").doubts
    assert "1 of 1 partitions are not proven" in doubt


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_real_one_proves_itself() -> None:
    program = Path(sys.executable).with_name("airmirror")
    done = subprocess.run([program, "demo", "--seconds", "5"], cwd=ROOT, capture_output=True, text=True, timeout=1100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Followed: " in done.stdout and "s at p99." in done.stdout
    assert "0 partitions with a difference. Everything is stopped." in done.stdout and "not proven" not in done.stdout
    assert "airmirror report check .local/demo-report/report.json" in done.stdout and "\nsound: " in done.stdout

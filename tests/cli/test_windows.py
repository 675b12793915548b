"""What is told of a window: once what is true of it, for people and for programs."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from airmirror.cli import plain, show
from airmirror.cli.tables import print_all
from airmirror.clusters.protocol.routes import TopicNotFound
from airmirror.config.errors import UnknownFlow
from airmirror.flows import gates, verification
from airmirror.flows.verification import ComparedPartition
from airmirror.on_spark import windows as spark_windows
from airmirror.topics.sync import SyncReport
from airmirror.windows.following import Followed
from airmirror.windows.judging import Verdict, Verification
from airmirror.windows.results import Row, WindowResult
from airmirror.windows.window import WindowOrder
from support.deployment import Deployment
from support.large import made


def test_a_failed_partition_is_not_verified_for_programs_either() -> None:
    row = made(Row, verified=True, read_back=True, error=UnknownFlow("file", "a->b", ()))
    told = plain.window(made(WindowResult, rows=(row,)), (), made(SyncReport))
    assert [each["verified"] for each in told["rows"]] == [False] and told["verified"] is False


@pytest.mark.parametrize(("followed", "rates"), [(None, 1), (Followed(10, 0.1, 0.3), 0)])
def test_a_window_has_one_rate_and_one_that_has_waited_for_records_none(followed: Followed | None, rates: int) -> None:
    written = io.StringIO()
    print_all(Console(file=written, width=10_000), show.window(made(WindowResult, followed=followed)))
    assert written.getvalue().count("records/s") == rates


def test_what_earlier_windows_had_committed_is_told_as_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = (Verdict("orders", 0, 1_499, 1_500, None), Verdict("orders", 1, 9, 10, UnknownFlow("file", "a->b", ())))
    nothing: Any = made(WindowResult, rows=(), window="w")
    monkeypatch.setattr(spark_windows, "run", lambda *_, **__: nothing)
    monkeypatch.setattr(spark_windows, "following_of", lambda *_, **__: None)
    monkeypatch.setattr(spark_windows, "verify_flow", lambda *_, **__: (Verification((), verdicts), None))
    monkeypatch.setattr(spark_windows, "with_verdicts", lambda result, *_: result)
    judged = spark_windows.run_judged(SimpleNamespace(opened=None), None, WindowOrder("w"), None)  # type: ignore[arg-type]
    assert judged.earlier == 1_500


@pytest.mark.parametrize(("error", "judges"), [(None, True), (TopicNotFound("b", "orders"), False)])
def test_verify_holds_nothing_of_what_it_can_not_see(
    error: TopicNotFound | None, judges: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks may describe less than windows do."""
    row = made(ComparedPartition, errors=() if error is None else (error,))
    judged: list[object] = []
    monkeypatch.setattr(verification, "compare_all", lambda *_: [row])
    monkeypatch.setattr(gates, "expectations_of", lambda _: None)
    monkeypatch.setattr(
        gates, "verify_flow", lambda opened, *_, **__: judged.append(opened) or (Verification((), ()), None)
    )
    shown = Deployment(tmp_path, "a:1", "b:1", ".*")("verify")
    assert (bool(judged), shown.exit_code) == (judges, 0 if judges else 1), shown.output

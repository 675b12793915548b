"""The task of a window, without Airflow: what a kill and a pause end, and what follows a cut one; test_runs has them there."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException, DagRunTriggerException, DownstreamTasksSkipped

from airmirror.config import parse
from airmirror.flows.selection import Selection
from airmirror.ledger import FlowLedger
from airmirror.ledger.database import connect
from airmirror.on_airflow.dags import operators
from airmirror.on_airflow.dags.operators import CUT, NEXT
from airmirror.on_airflow.dags.replicate import replicate_dag
from airmirror.on_airflow.pausing import PauseWatch, WindowPaused
from airmirror.on_airflow.tasks import window as work
from airmirror.quality.verdict import Judgement
from airmirror.windows.results import WindowResult

CONFIGURATION = """
clusters = a, b
a.bootstrap.servers = one:9092
b.bootstrap.servers = two:9092
a->b.enabled = true
"""


class Interrupted(Exception):
    """What a window ends with when its job is interrupted."""


class Window:
    """A window that copies until it is interrupted, or has ended ``cut`` or not."""

    def __init__(self, cut: bool | None = None) -> None:
        self.cut, self.begun, self.interrupted = cut, threading.Event(), threading.Event()

    def replicate(self) -> WindowResult:
        self.begun.set()
        if self.cut is not None:
            return WindowResult("a->b", "w", (), partitions=1, seconds=1.0, phases={}, is_cut=self.cut)
        assert self.interrupted.wait(60), "nobody ended it"
        raise Interrupted

    def interrupt(self) -> None:
        self.interrupted.set()


def tasks_with(window: Window, monkeypatch: pytest.MonkeyPatch, is_paused: bool = False) -> Any:
    """The tasks of a flow's DAG, whose window is this one."""
    tasks = replicate_dag(parse(CONFIGURATION, "mirror.properties").flow("a->b")).task_dict
    monkeypatch.setattr(tasks["replicate_window"], "windows", lambda *_: window)
    monkeypatch.setattr(operators, "dag_is_paused", lambda dag_id: is_paused and dag_id == "replicate.a.b")
    monkeypatch.setattr(operators, "PauseWatch", lambda *asked: PauseWatch(*asked, every=0.01))
    return tasks


def context(pushed: dict[str, Any]) -> Any:
    ti = SimpleNamespace(
        try_number=1,
        xcom_push=pushed.__setitem__,
        xcom_pull=lambda task_ids, key: pushed.get(key) if task_ids else None,
    )
    return {"ti": ti, "run_id": "r", "dag": SimpleNamespace(dag_id="replicate.a.b"), "params": {}}


def test_a_terminated_task_ends_its_window(monkeypatch: pytest.MonkeyPatch) -> None:
    window = Window()
    task, pushed = tasks_with(window, monkeypatch)["replicate_window"], dict[str, Any]()
    task.on_kill()  # before there is one
    assert not window.interrupted.is_set()
    killer = threading.Thread(target=lambda: window.begun.wait(60) and task.on_kill())
    killer.start()
    with pytest.raises(Interrupted):  # no error of ours that says not to try again
        task.work(context(pushed), Selection())
    killer.join()
    assert pushed["return_value"].startswith("r#1-") and CUT not in pushed, "what it has committed is judged"


def test_a_paused_dag_ends_its_window_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    task = tasks_with(Window(), monkeypatch, is_paused=True)["replicate_window"]
    with pytest.raises(WindowPaused, match=r"replicate\.a\.b is paused") as ended:
        task.work(context({}), Selection())
    assert isinstance(ended.value.__cause__, Interrupted)


@pytest.mark.parametrize("cut", [True, False])
def test_a_window_that_was_cut_is_followed_by_the_next_at_once(monkeypatch: pytest.MonkeyPatch, cut: bool) -> None:
    tasks, pushed = tasks_with(Window(cut), monkeypatch), dict[str, Any]()
    if cut:
        tasks["replicate_window"].work(context(pushed), Selection())
        with pytest.raises(DagRunTriggerException) as started:
            tasks[NEXT].execute(context(pushed))
        assert started.value.trigger_dag_id == "replicate.a.b"
        return
    with pytest.raises(DownstreamTasksSkipped) as skipped:
        tasks["replicate_window"].work(context(pushed), Selection())
    assert list(skipped.value.tasks) == [NEXT]
    with pytest.raises(AirflowSkipException):  # cleared alone
        tasks[NEXT].execute(context(pushed))


def test_past_intervals_are_refused_by_the_flow_s_own_dag() -> None:
    flow = parse(CONFIGURATION, "mirror.properties").flow("a->b")
    allowed = replicate_dag(flow).allowed_run_types
    assert allowed is not None and "backfill" not in {str(each) for each in allowed}


def test_a_page_that_is_not_kept_holds_nothing(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """The page shows a verdict, and makes none."""
    shown, ledger = list[str](), FlowLedger(connect(f"sqlite:///{tmp_path / 'no-tables.db'}"), "a->b")
    work._keep_verdict(ledger, "w", shown.append, [], Judgement({}, (), frozenset()))
    assert not shown and "page of this judgement is not kept: the ledger at" in caplog.text

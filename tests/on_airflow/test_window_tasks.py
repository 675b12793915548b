"""The task of a window, without Airflow: what a kill and a pause end, and what follows a cut one; test_runs has them there."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException, DagRunTriggerException, DownstreamTasksSkipped
from typer.testing import CliRunner

from airmirror.cli.main import app
from airmirror.clusters.admin.creation import TopicCreationFailed, TopicCreationRefused
from airmirror.config import parse
from airmirror.flows import post_window
from airmirror.flows.prepare import Opened, Prepared, open_flow
from airmirror.flows.selection import Selection
from airmirror.ledger import FlowLedger
from airmirror.ledger.database import connect
from airmirror.on_airflow.dags import operators
from airmirror.on_airflow.dags.operators import CUT, NEXT
from airmirror.on_airflow.dags.replicate import replicate_dag
from airmirror.on_airflow.pausing import PauseWatch, WindowPaused
from airmirror.on_airflow.tasks import window as work
from airmirror.on_airflow.tasks.telling import NotVerified, PartitionsFailed
from airmirror.on_spark import job
from airmirror.on_spark import windows as spark_windows
from airmirror.on_spark.windows import RunWindow
from airmirror.quality.verdict import Validation
from airmirror.topics.sync import SyncReport
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
        raise Interrupted("of its own")

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
        get_dr_count=lambda *_, **__: 0,
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


def test_a_paused_dag_ends_its_window_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    task = tasks_with(Window(), monkeypatch, is_paused=True)["replicate_window"]
    with pytest.raises(WindowPaused, match=r"replicate\.a\.b is paused") as ended:
        task.work(context({}), Selection())
    assert isinstance(ended.value.__cause__, Interrupted) and "The window ends with: of its own" in caplog.text


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


def test_what_passed_beside_what_is_held_is_told_by_the_next_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow takes no events of a task that fails."""
    tasks, pushed = tasks_with(Window(), monkeypatch), dict[str, Any]()
    received = work.Received("orders", "a.orders", "one:9092", "two:9092", 5, {0: (0, 5)})

    def verify(*_: object, passed: Any, **__: object) -> None:
        passed([received])
        raise NotVerified("a->b", "w", 1, 0, ("bills-0 differs",), (), held=(("bills", 0, 9),), runs=("i",))

    asked: list[Any] = []
    monkeypatch.setattr(work, "verify", verify)
    monkeypatch.setattr(work, "still_to_tell", lambda _, flow, told: asked.append((flow, told)) or (received,))
    monkeypatch.setattr(work, "do_task", lambda *_: [])
    with pytest.raises(NotVerified):
        tasks["verify_window"].work(context(pushed), Selection())
    (alias,) = tasks["emit_offset_syncs"].outlets
    events = list[Any]()
    added = SimpleNamespace(add=lambda asset, extra: events.append((asset.uri, extra["offsets"])))
    with pytest.raises(DownstreamTasksSkipped):
        tasks["emit_offset_syncs"].work(context(pushed) | {"outlet_events": {alias: added}}, Selection())
    assert asked == [("a->b", [received.as_told])] and events == [("kafka://two:9092/a.orders", {"0": [0, 5]})]


@pytest.mark.parametrize("kind", [TopicCreationFailed, TopicCreationRefused])
def test_a_topic_that_can_t_be_made_now_is_tried_again(
    kind: type[TopicCreationRefused], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In Airflow's task, in a driver of its own and in the command, all the same."""
    error, passes = kind("b", "a.orders", "planted"), kind is TopicCreationFailed
    (config := tmp_path / "mirror.properties").write_text(CONFIGURATION)
    ledger = f"sqlite:///{tmp_path / 'ledger.db'}"
    monkeypatch.setenv("AIRMIRROR_LEDGER", ledger)
    report = SyncReport({}, refused=(str(error),), errors=(error,))
    result = WindowResult("a->b", "w", (), partitions=0, seconds=1.0, phases={}, is_cut=False)

    def prepared(opened: Opened, *_: object) -> Prepared:
        return Prepared(opened, {}, report.refused, report)

    for module in (job, sys.modules["airmirror.cli.run_window"]):
        monkeypatch.setattr(module, "prepare", prepared)
    monkeypatch.setattr(job, "_window", lambda *_: result)
    monkeypatch.setattr(job, "do_tasks", lambda *_: [])
    monkeypatch.setattr(post_window, "do_tasks", lambda *_: [])
    monkeypatch.setattr(spark_windows, "run_judged", lambda *_: RunWindow(result, None))
    with open_flow(config, "a->b", ledger) as opened, pytest.raises(PartitionsFailed) as failed:
        work.check_result(prepared(opened), result)
    assert failed.value.transient == passes
    submitted = job.main(["--config", str(config), "--flow", "a->b", "--window", "w"])
    assert submitted == (job.TRANSIENT if passes else job.FINAL)
    told = CliRunner().invoke(app, ["run-window", "--config", str(config), "--ledger", ledger, "--local"])
    assert told.exit_code == (75 if passes else 1), told.output


def test_past_intervals_are_refused_by_the_flow_s_own_dag() -> None:
    flow = parse(CONFIGURATION, "mirror.properties").flow("a->b")
    allowed = replicate_dag(flow).allowed_run_types
    assert allowed is not None and "backfill" not in {str(each) for each in allowed}


def test_a_page_that_is_not_kept_holds_nothing(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """The page shows a verdict, and makes none."""
    shown, ledger = list[str](), FlowLedger(connect(f"sqlite:///{tmp_path / 'no-tables.db'}"), "a->b")
    work._keep_verdict(ledger, "w", shown.append, [], Validation({}, ()))
    assert not shown and "page of this judgement is not kept: the ledger at" in caplog.text

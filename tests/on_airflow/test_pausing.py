"""The watch that ends a window while its DAG is paused."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import DagResult
from airflow.sdk.execution_time.supervisor import InProcessSupervisorComms

from airmirror.on_airflow.pausing import PauseWatch, dag_is_paused


def test_it_stops_again_and_again_until_the_work_has_ended() -> None:
    answers = iter([False, OSError("the API server is away"), True, True, True])
    stopped: list[int] = []
    enough = threading.Event()

    def is_paused() -> bool:
        answer = next(answers, True)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stop() -> None:
        stopped.append(1)
        if len(stopped) == 3:
            enough.set()
        if len(stopped) == 1:
            raise OSError("Spark is away")

    with PauseWatch(is_paused, stop, every=0.01) as watch:
        assert enough.wait(60)
    assert watch.paused


def test_nothing_is_stopped_while_the_dag_is_on() -> None:
    asked = threading.Event()
    stopped: list[int] = []

    def is_paused() -> bool:
        asked.set()
        return False

    with PauseWatch(is_paused, lambda: stopped.append(1), every=0.01) as watch:
        assert asked.wait(60)
    assert not watch.paused and stopped == []


class Supervisor:
    """Says of every DAG that it is paused."""

    def send(self, _message: Any) -> DagResult:
        return DagResult.model_construct(dag_id="replicate.a.b", is_paused=True)

    def _handle_request(self, *_arguments: Any) -> None:
        raise AssertionError("asked in a second thread")


def test_what_airflow_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", Supervisor(), raising=False)
    assert dag_is_paused("replicate.a.b")


def test_airflow_dags_test_runs_what_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    in_process = InProcessSupervisorComms(supervisor=Supervisor())
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", in_process, raising=False)
    assert not dag_is_paused("replicate.a.b")

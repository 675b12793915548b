"""A person approves a take-over from MirrorMaker 2 in Airflow; it is carried out, and a first window follows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from airmirror.flows.prepare import Opened
from airmirror.on_airflow.dags.runbooks import LEAVE, asking
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.tasks import runbooks
from airmirror.runbooks.errors import Incomplete
from airmirror_local.brokers import Broker
from support.approvals import answered, approvals, run_of, tasks_of
from support.flows import as_mirrormaker, mirror
from support.mirrormaker import numbered
from support.topics import Record, produce

__all__ = ["approvals"]

PLAN, RUN, TAKE_OVER = asking("take_over"), "take_over", "Take over"


def test_a_question_shows_the_plan_and_an_answer_takes_over(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, approvals: str
) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(100))
    as_mirrormaker(flow, 70, 59)

    @contextmanager
    def opened_flow(*_: object) -> Iterator[Opened]:
        yield flow.opened

    monkeypatch.setattr(runbooks, "opened_flow", opened_flow)
    place = replace(deployment(), data_docs=tmp_path / "docs")
    monkeypatch.setattr("airmirror.on_airflow.dags.runbooks.deployment", lambda: place)
    tasks, form = (
        tasks_of(flow.flow, "takeover"),
        {"runbook": "takeover", "verb": "run", "reason": "moving day", "steps": None},
    )
    asked = tasks[PLAN].ask(run_of(form))
    assert "1 partition can continue after MirrorMaker 2's copies, 0 can't" in asked.subject
    assert f"| {flow.topic} | 0 | {flow.remote_topic} | 59 | 70 | 100 | 10 | 0 |" in asked.body.replace("\\", "")
    with pytest.raises(AirflowSkipException):
        tasks[RUN].execute(answered(tasks, run_of(form), PLAN, LEAVE))
    assert not flow.opened.ledger.last_mappings()
    tasks[RUN].execute(answered(tasks, run_of(form), PLAN, TAKE_OVER))
    [taken] = flow.opened.ledger.last_mappings().values()
    assert (taken.source_start, taken.source_end, taken.copied) == (60, 70, 10)
    assert flow.run().is_verified and flow.assert_equal() == 100
    produce(west, flow.remote_topic, [Record(b"of others")], partition=0)
    with pytest.raises(Incomplete):
        tasks[RUN].execute(answered(tasks, run_of(form), PLAN, TAKE_OVER))

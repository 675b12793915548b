"""A person approves a take-over from MirrorMaker 2 in Airflow, or a hand-back to it; it is carried out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from airflow.sdk.exceptions import AirflowSkipException, DownstreamTasksSkipped

from airmirror.flows.prepare import Opened
from airmirror.on_airflow.dags.runbooks import LEAVE, asking
from airmirror.on_airflow.tasks import runbooks
from airmirror.runbooks.errors import Incomplete
from airmirror.wire.mirrormaker import source_offset_key
from airmirror_local.brokers import Broker
from support.approvals import answered, approvals, run_of, tasks_of
from support.flows import Mirror, as_mirrormaker, mirror
from support.kept import kept
from support.mirrormaker import numbered
from support.topics import Record, create_topic, produce, read_all
from support.waiting import short_waits

__all__ = ["approvals", "short_waits"]

PLAN, RUN, TAKE_OVER = asking("take_over"), "take_over", "Take over"


@pytest.fixture
def mirrored(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, approvals: str
) -> Iterator[Mirror]:
    """A flow with 100 records on its source, as the tasks open it."""
    made = mirror(east, west, tmp_path)
    produce(east, made.topic, numbered(100))

    @contextmanager
    def opened_flow(*_: object) -> Iterator[Opened]:
        yield made.opened

    monkeypatch.setattr(runbooks, "opened_flow", opened_flow)
    yield made


def test_a_hand_back_is_shown_approved_written_and_checked(mirrored: Mirror, west: Broker) -> None:
    flow = mirrored
    assert flow.run().is_verified
    tasks, topic = tasks_of(flow.flow, "handback"), create_topic(west, f"connect-offsets-{uuid4().hex[:8]}", 5)
    form: dict[str, Any] = {"runbook": "handback", "verb": "run", "reason": "back again", "steps": None}
    form["connector"] = "our mirror"
    with pytest.raises(DownstreamTasksSkipped):  # a dedicated one needs nothing
        tasks[asking("write")].ask(run_of(form))
    form["into"] = topic
    asked = tasks[asking("write")].ask(run_of(form))
    assert "1 partition" in asked.subject and topic in asked.body.replace("\\", "")
    with pytest.raises(AirflowSkipException):
        tasks["write"].execute(answered(tasks, run_of(form), asking("write"), LEAVE))
    assert not any(read_all(west, topic).values())
    tasks["write"].execute(answered(tasks, run_of(form), asking("write"), "Hand back"))
    [record] = [each for its in read_all(west, topic).values() for each in its]
    assert record.key == source_offset_key(flow.flow.source.alias, flow.topic, 0, "our mirror")
    assert topic in kept(tasks["write"].page)
    tasks["plan"].execute(run_of(form | {"verb": "plan", "check": True}))
    assert "nothing to copy" in kept(tasks["plan"].page)


def test_a_question_shows_the_plan_and_an_answer_takes_over(mirrored: Mirror, west: Broker) -> None:
    flow = mirrored
    as_mirrormaker(flow, 70, 59)
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

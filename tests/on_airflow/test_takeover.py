"""A person approves a take-over from MirrorMaker 2 in Airflow; it is carried out, and a first window follows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from airmirror.clusters.admin.appender import Appender
from airmirror.config import load
from airmirror.flows.prepare import Opened
from airmirror.naming import progress_topic
from airmirror.on_airflow.dags.takeover import LEAVE, PLAN, RUN, TAKE_OVER, takeover_dag
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.tasks import takeover
from airmirror.topics.internal import ensure_internal_topics
from airmirror.topics.sync import apply, look
from airmirror.wire.mirrormaker import murmur2_partition, source_offset_key, source_offset_value
from airmirror_local.brokers import Broker
from on_airflow.conftest import AirflowFlow
from support.approvals import answered, approvals, run_of
from support.flows import as_mirrormaker, mirror
from support.mirrormaker import numbered
from support.topics import Record, produce, read_all

__all__ = ["approvals"]


def test_a_question_shows_the_plan_and_an_answer_takes_over(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, approvals: str
) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(100))
    as_mirrormaker(flow, 70, 59)

    @contextmanager
    def opened_flow(*_: object) -> Iterator[Opened]:
        yield flow.opened

    monkeypatch.setattr(takeover, "opened_flow", opened_flow)
    tasks: dict[str, Any] = takeover_dag(flow.flow).task_dict
    asked = takeover.ask(deployment(), flow.flow.name)
    assert "1 partition can go on after MirrorMaker 2's copies, 0 can't" in asked.subject
    assert f"| {flow.topic} | 0 | {flow.remote_topic} | 59 | 70 | 100 | 10 | 0 |" in asked.body.replace("\\", "")
    with pytest.raises(AirflowSkipException):
        tasks[RUN].execute(answered(tasks, run_of({}), PLAN, LEAVE))
    assert not flow.opened.ledger.last_segments()
    tasks[RUN].execute(answered(tasks, run_of({}), PLAN, TAKE_OVER))
    [taken] = flow.opened.ledger.last_segments().values()
    assert (taken.source_start, taken.source_end, taken.copied) == (60, 70, 10)
    assert flow.run().is_verified and flow.assert_equal() == 100
    produce(west, flow.remote_topic, [Record(b"of others")], partition=0)
    with pytest.raises(takeover.NotTakenOver, match="1 partition can't be taken over"):
        tasks[RUN].execute(answered(tasks, run_of({}), PLAN, TAKE_OVER))


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.flow("taken")
def test_a_take_over_that_a_person_approves(flow: AirflowFlow) -> None:
    found = load(flow.under_test.directory / "mirror.properties").flow("taken->west")
    for partition in (0, 1):
        produce(flow.east, flow.topic, numbered(100, 1000 * partition), partition=partition)
    apply(found, look(found))
    ensure_internal_topics(found)
    for partition in (0, 1):
        records = read_all(flow.east, flow.topic)[partition][:70]
        produce(flow.west, f"taken.{flow.topic}", records, partition=partition)
        key = source_offset_key("taken", flow.topic, partition)
        with Appender(found.target, progress_topic("taken"), murmur2_partition(key, 3)) as appender:
            appender.append([(key, source_offset_value(59))])
    dag_id = "takeover.taken.west"
    run_id = flow.client.trigger(dag_id)
    question = flow.answer(dag_id, run_id, "plan", TAKE_OVER)
    assert "2 partitions can go on" in question["subject"] and "| 59 | 70 | 10 | 0 |" in question["body"]
    assert flow.client.wait_for_run(dag_id, run_id) == "success", flow.client.log(dag_id, run_id, "take_over", 1)
    assert "taken-orders-1 continues at 70" in flow.client.log(dag_id, run_id, "take_over", 1)
    flow.client.unpause(flow.dag_id)
    flow.client.wait(lambda: len(flow.ended()) >= 1)
    assert {run["state"] for run in flow.ended()} == {"success"}
    assert flow.assert_equal() == 200

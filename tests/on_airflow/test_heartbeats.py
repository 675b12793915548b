"""Heartbeats in a real Airflow: a deferred task emits them, a flow replicates them, and *Mark failed* ends it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferred

from airmirror.on_airflow.dags.heartbeats import heartbeats_dag
from airmirror.wire.mirrormaker import Heartbeat
from airmirror_local.brokers import Broker
from on_airflow.conftest import AirflowFlow, AirflowUnderTest
from support.flows import a_flow
from support.heartbeats import heartbeats_deleted
from support.sides import Sides
from support.topics import admin, read_all

DAG, TASK = "heartbeats.heart", "from_west"

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def emitting(airflow: AirflowUnderTest, apart: Sides, west: Broker) -> Iterator[str]:
    """The run that emits heartbeats into a cluster of its own, which is ``heart`` here; ended at the end."""
    client = airflow.client
    with heartbeats_deleted(apart.east, west):
        client.wait(lambda: DAG in client.dag_ids())
        client.unpause(DAG)
        for run in client.runs(DAG)[:1]:  # of another test: the DAG is hourly, so none follows it for up to an hour
            client.clear(DAG, run["dag_run_id"], TASK)
        run_id = client.wait(lambda: [run for run in client.runs(DAG) if run["state"] == "running"])[0]["dag_run_id"]
        try:
            yield run_id
        finally:
            client.pause(DAG)
            for run in client.runs(DAG):
                if run["state"] in ("running", "queued"):
                    client.fail(DAG, run["dag_run_id"])


def times(east: Broker) -> list[int]:
    if "heartbeats" not in admin(east).list_topics(timeout=30).topics:
        return []
    (records,) = read_all(east, "heartbeats").values()
    return [Heartbeat.decode(record.key or b"", record.value or b"").time_ms for record in records]


def test_the_task_waits_in_the_triggerer_and_says_what_became_of_them() -> None:
    (task,) = heartbeats_dag("west", [a_flow("east")]).tasks
    with pytest.raises(TaskDeferred) as deferred:
        task.execute({})
    assert deferred.value.trigger.serialize()[1] == {"flow": "east->west"}
    resumed = getattr(task, deferred.value.method_name)
    resumed({}, {"taken": 3, "failed": 1, "reason": "busy"})
    with pytest.raises(AirflowException, match="west can't be reached"):
        resumed({}, {"taken": 0, "failed": 3, "reason": "west can't be reached"})
    with pytest.raises(AirflowFailException, match="no such flow"):
        resumed({}, {"error": "no such flow"})


@pytest.mark.long  # above is the task, in test_heartbeat_trigger.py what it waits for
@pytest.mark.flow("heart")
def test_heartbeats_are_emitted_by_a_deferred_task_until_it_is_marked_failed(
    airflow: AirflowUnderTest, apart: Sides, emitting: str
) -> None:
    client, east = airflow.client, apart.east
    client.wait(lambda: len(times(east)) >= 5)
    assert client.tasks(DAG, emitting)[TASK]["state"] == "deferred"  # no worker is busy with it
    found = times(east)
    gaps = [after - before for before, after in pairwise(found)]
    assert sum(900 <= gap <= 1500 for gap in gaps) >= len(gaps) * 0.7, gaps
    client.fail(DAG, emitting)
    client.wait(lambda: client.tasks(DAG, emitting)[TASK]["state"] == "failed")
    client.wait(lambda: time.time() * 1000 - times(east)[-1] > 4000)


@pytest.mark.long  # the one above has the run, test_heartbeat_trigger.py the trigger, tests/offsets what is replicated of them
@pytest.mark.flow("heart")
def test_heartbeats_are_replicated_while_they_are_emitted(flow: AirflowFlow, emitting: str) -> None:
    flow.client.wait(lambda: len(times(flow.east)) >= 3)
    first = flow.first_run()
    assert first["state"] == "success", flow.log(first["dag_run_id"], "replicate_window")
    # It resumed while the window ran.
    copies = read_all(flow.west, "heart.heartbeats")[0]
    found = times(flow.east)
    assert 3 <= len(copies) < len(found)
    originals = read_all(flow.east, "heartbeats")[0]
    assert [copy.content for copy in copies] == [record.content for record in originals[: len(copies)]]
    gaps = [after - before for before, after in pairwise(found)]
    assert sum(900 <= gap <= 1500 for gap in gaps) >= len(gaps) * 0.7, gaps
    # What they tell is in the gate's log and among the metrics.
    assert f"{len(copies)} heartbeats of heart: readable after" in flow.log(first["dag_run_id"], "verify_window")
    slowest = [value for name, value in flow.metrics().items() if 'of="most"' in name and 'until="verified"' in name]
    assert len(slowest) == 1 and 0 < slowest[0] < 300

"""Heartbeats in a real Airflow: a deferred task emits them, a flow replicates them, and *Mark failed* ends it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from airmirror.wire.heartbeats import decode_heartbeat
from on_airflow.conftest import AirflowFlow
from support.heartbeats import heartbeats_deleted
from support.topics import admin, read_all

DAG, TASK = "heartbeats.heart", "from_west"

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def emitting(flow: AirflowFlow) -> Iterator[str]:
    """The run that emits heartbeats into east, which is ``heart`` here; ended at the end."""
    client = flow.client
    with heartbeats_deleted(flow.east, flow.west):
        client.wait(lambda: DAG in client.dag_ids())
        client.unpause(DAG)
        run_id = client.wait(lambda: client.runs(DAG))[0]["dag_run_id"]
        try:
            yield run_id
        finally:
            client.pause(DAG)
            for run in client.runs(DAG):
                if run["state"] in ("running", "queued"):
                    client.fail(DAG, run["dag_run_id"])


def times(flow: AirflowFlow) -> list[int]:
    if "heartbeats" not in admin(flow.east).list_topics(timeout=30).topics:
        return []
    (records,) = read_all(flow.east, "heartbeats").values()
    return [decode_heartbeat(record.key or b"", record.value or b"").time_ms for record in records]


@pytest.mark.long  # test_heartbeat_trigger.py has the trigger, tests/offsets what is replicated of them
@pytest.mark.flow("heart")
def test_heartbeats_are_emitted_by_a_deferred_task_and_replicated(flow: AirflowFlow, emitting: str) -> None:
    client = flow.client
    client.wait(lambda: len(times(flow)) >= 3)
    assert client.tasks(DAG, emitting)[TASK]["state"] == "deferred"  # no worker is busy with it
    first = flow.first_run()
    assert first["state"] == "success", flow.log(first["dag_run_id"], "replicate_window")
    # It went on while the window ran. Then it is ended, as a person would do it.
    copies = read_all(flow.west, "heart.heartbeats")[0]
    found = times(flow)
    assert 3 <= len(copies) < len(found)
    originals = read_all(flow.east, "heartbeats")[0]
    assert [copy.content for copy in copies] == [record.content for record in originals[: len(copies)]]
    gaps = [after - before for before, after in pairwise(found)]
    assert sum(900 <= gap <= 1500 for gap in gaps) >= len(gaps) * 0.7, gaps
    # What they tell is in the gate's log and among the metrics.
    assert f"{len(copies)} heartbeats of heart: readable after" in flow.log(first["dag_run_id"], "verify_window")
    slowest = [value for name, value in flow.metrics().items() if 'of="most"' in name and 'until="verified"' in name]
    assert len(slowest) == 1 and 0 < slowest[0] < 300
    client.fail(DAG, emitting)
    client.wait(lambda: client.tasks(DAG, emitting)[TASK]["state"] == "failed")
    client.wait(lambda: time.time() * 1000 - times(flow)[-1] > 4000)

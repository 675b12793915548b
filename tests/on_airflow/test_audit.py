"""Backfills of past intervals, and replays of offsets, in a real Airflow; both with the live flow at work."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from on_airflow.conftest import AirflowFlow
from support.topics import Record, produce, read_all

pytestmark = pytest.mark.timeout(900)

HOUR = 3600
FIRST = (int(time.time()) // HOUR - 6) * HOUR  # epoch seconds


def records(hour: int, count: int = 40) -> list[Record]:
    begins = (FIRST + hour * HOUR) * 1000
    return [Record(b"value-%d-%d" % (hour, n), b"key-%d" % n, (), begins + n * 60_000) for n in range(count)]


def at(hour: int) -> str:
    return datetime.fromtimestamp(FIRST + hour * HOUR, UTC).isoformat()


def backfill(flow: AirflowFlow, dag_id: str, first: int, last: int, reprocess: str = "none") -> None:
    """The runs of the intervals that begin with hours ``first`` to ``last``."""
    body = {"dag_id": dag_id, "from_date": at(first), "to_date": at(last), "reprocess_behavior": reprocess}
    flow.client.request("POST", "/backfills", body | {"dag_run_conf": {}})


def backfilled(flow: AirflowFlow, dag_id: str, hours: list[int], attempts: int = 1) -> list[dict[str, Any]]:
    """Waits until the intervals' runs have ended well."""

    def found() -> list[dict[str, Any]] | None:
        begins = {datetime.fromtimestamp(FIRST + hour * HOUR, UTC) for hour in hours}
        runs = [
            run
            for run in flow.client.runs(dag_id)
            if run["run_type"] == "backfill" and datetime.fromisoformat(run["data_interval_start"]) in begins
        ]
        ended = [run for run in runs if run["state"] in ("success", "failed")]
        return runs if len(ended) == len(begins) == len(runs) else None

    runs = flow.client.wait(found)
    assert runs is not None
    for run in runs:
        tasks = flow.client.tasks(dag_id, run["dag_run_id"])
        assert run["state"] == "success", {name: task["state"] for name, task in tasks.items()}
    return runs


@pytest.mark.long  # test_tasks, test_window_tasks and flows/test_audit have what the tasks do
@pytest.mark.flow("audited")
def test_past_intervals_are_replicated_in_order_and_compared_again(flow: AirflowFlow) -> None:
    dag_id = f"audit.{flow.source}.{flow.target}"
    for hour in range(4):
        for partition in (0, 1):
            produce(flow.east, flow.topic, records(hour), partition=partition)
    with pytest.raises(httpx.HTTPStatusError, match="does not allow backfill"):
        backfill(flow, flow.dag_id, 0, 1)
    assert dag_id in flow.client.request("GET", f"/dags/{flow.dag_id}/details")["doc_md"]
    flow.client.unpause(dag_id)
    try:
        flow.under_test.stack.command(
            "backfill", "create", "--dag-id", dag_id, "--from-date", at(0), "--to-date", at(1)
        )
        runs = backfilled(flow, dag_id, [0, 1])
        remote = read_all(flow.west, f"{flow.source}.{flow.topic}")
        assert {number: len(found) for number, found in remote.items()} == {0: 80, 1: 80}  # and nothing later
        run_id = runs[0]["dag_run_id"]
        log = flow.client.log(dag_id, run_id, "compare")
        assert "audited-orders" in log and "Report:" in log
        page = replace(flow, kind="audit").page(run_id, "compare", "audit_report")
        assert page.status_code == 200 and "<polyline " in page.text
    finally:
        flow.client.pause(dag_id)


@pytest.mark.long
@pytest.mark.flow("repeated")
def test_past_intervals_replicated_again_beside_the_live_flow_change_nothing(flow: AirflowFlow) -> None:
    """Each record is there once, in order."""
    dag_id = f"audit.{flow.source}.{flow.target}"
    for hour in range(4):
        for partition in (0, 1):
            produce(flow.east, flow.topic, records(hour), partition=partition)
    flow.client.unpause(dag_id)
    try:
        backfill(flow, dag_id, 0, 1)
        backfilled(flow, dag_id, [0, 1])
        flow.client.wait(lambda: _over(flow))
        backfill(flow, dag_id, 0, 2, reprocess="completed")
        flow.client.unpause(flow.dag_id)
        live = flow.client.wait(flow.ended)[0]
        assert live["state"] == "success"
        backfilled(flow, dag_id, [0, 1, 2])
        assert flow.assert_equal() == 320
    finally:
        flow.client.pause(dag_id)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.flow("backfilled")
def test_what_was_before_the_first_window_is_replicated_into_a_topic_of_its_own(flow: AirflowFlow) -> None:
    dag_id, history = f"audit.{flow.source}.{flow.target}", f"{flow.source}.{flow.topic}.history"
    for hour in range(3):
        for partition in (0, 1):
            produce(flow.east, flow.topic, records(hour), partition=partition)
    assert flow.first_run()["state"] == "success"  # it begins at the end
    flow.client.unpause(dag_id)
    try:
        backfill(flow, dag_id, 0, 1)
        backfilled(flow, dag_id, [0, 1])
        expected = [record.content for hour in (0, 1) for record in records(hour)]
        remote = read_all(flow.west, history)
        assert {number: [record.content for record in found] for number, found in remote.items()} == {
            0: expected,
            1: expected,
        }
        flow.client.wait(lambda: _over(flow))
        backfill(flow, dag_id, 0, 1, reprocess="completed")
        flow.client.wait(lambda: _over(flow))
        runs = backfilled(flow, dag_id, [0, 1])
        assert read_all(flow.west, history) == remote
        run_id = runs[0]["dag_run_id"]
        attempts = range(1, flow.client.tasks(dag_id, run_id)["compare"]["try_number"] + 1)
        told, compared = (
            "\n".join(flow.client.log(dag_id, run_id, task, attempt) for attempt in attempts)
            for task in ("replicate_window", "compare")
        )
        assert "was replicated before" in told and history in compared
        assert read_all(flow.west, f"{flow.source}.{flow.topic}") == {0: [], 1: []}
    finally:
        flow.client.pause(dag_id)


@pytest.mark.long
@pytest.mark.flow("replayed")
def test_explicit_offsets_are_replayed(flow: AirflowFlow) -> None:
    dag_id = f"audit.{flow.source}.{flow.target}"
    produce(flow.east, flow.topic, records(0), partition=1, records_per_batch=15)
    try:
        offsets = {"what": "offsets", "topics": [flow.topic], "partitions": [1], "start": 5, "end": 20}
        dry = flow.client.trigger(dag_id, offsets)
        assert flow.client.wait_for_run(dag_id, dry) == "success"
        log = flow.client.log(dag_id, dry, "compare")
        assert flow.client.tasks(dag_id, dry)["replicate_window"]["state"] == "skipped" and "15" in log
        wrong = flow.client.trigger(dag_id, offsets | {"what": "replay", "end": 41})
        real = flow.client.trigger(dag_id, offsets | {"what": "replay"})
        assert flow.client.wait_for_run(dag_id, wrong) == "failed"
        assert "the source ends at 40" in flow.client.log(dag_id, wrong, "replicate_window")
        assert flow.client.wait_for_run(dag_id, real) == "success"
        remote = read_all(flow.west, f"{flow.source}.{flow.topic}")
        assert {number: len(found) for number, found in remote.items()} == {0: 0, 1: 20}  # in order: 0 to 4 too
    finally:
        flow.client.pause(dag_id)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.flow("submitted")
def test_intervals_and_offsets_are_replicated_by_spark_submit(flow: AirflowFlow) -> None:
    audit = f"audit.{flow.source}.{flow.target}"
    for hour in range(3):
        for partition in (0, 1):
            produce(flow.east, flow.topic, records(hour), partition=partition)
    flow.client.unpause(audit)
    try:
        backfill(flow, audit, 0, 1)
        runs = backfilled(flow, audit, [0, 1])
        told = "\n".join(flow.client.log(audit, run["dag_run_id"], "replicate_window") for run in runs)
        assert "spark-submit" in told and "airmirror: window" in told
        remote = read_all(flow.west, f"{flow.source}.{flow.topic}")
        assert {number: len(found) for number, found in remote.items()} == {0: 80, 1: 80}  # and nothing later
        flow.client.wait(lambda: _over(flow))
        conf = {"what": "replay", "topics": [flow.topic], "partitions": [1], "start": 80, "end": 100}
        run_id = flow.client.trigger(audit, conf)
        assert flow.client.wait_for_run(audit, run_id) == "success"
        assert "airmirror: window" in flow.client.log(audit, run_id, "replicate_window")
        remote = read_all(flow.west, f"{flow.source}.{flow.topic}")
        assert {number: len(found) for number, found in remote.items()} == {0: 80, 1: 100}
        assert flow.first_run()["state"] == "success"
        assert flow.assert_equal() == 240
    finally:
        flow.client.pause(audit)


def _over(flow: AirflowFlow) -> bool:
    found = flow.client.request("GET", "/backfills", dag_id=f"audit.{flow.source}.{flow.target}")["backfills"]
    return all(item["completed_at"] for item in found)

"""Runs in a real Airflow: scheduled, with no secret in sight, from the trigger form, by an alert, cut, gated."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from airmirror_local.airflow_client import PATIENCE_SECONDS
from on_airflow.conftest import SECRET, AirflowFlow
from support.following import await_readable
from support.groups import await_committed, commit
from support.topics import Record, end_offsets, produce, read_all
from support.webhooks import GRAFANA

GATE = """
name: at-most-ten
flows: ["gate->west"]
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: copied, max_value: 10}
    notes: Stocks must stay quiet at the weekend.
"""

pytestmark = pytest.mark.timeout(900)


def records(count: int, start: int = 0, size: int = 200) -> list[Record]:
    return [
        Record(b"value-%d" % n + b"x" * size, b"key-%d" % n, (), 1_700_000_000_000 + n)
        for n in range(start, start + count)
    ]


@pytest.mark.flow("scheduled")
def test_scheduled_runs_replicate_verify_and_advance_and_tell_no_secret(flow: AirflowFlow) -> None:
    """Secrets of the file and of a connection are in no log, XCom or other file, nor in any process's arguments."""
    produce(flow.east, flow.topic, records(500))
    with arguments_noted() as arguments:
        first = flow.first_run()
    assert first["run_type"] == "scheduled"
    assert first["state"] == "success", flow.log(first["dag_run_id"], "sync_topics")
    assert any("pyspark" in each for each in arguments) and not any(SECRET in each for each in arguments)
    produce(flow.east, flow.topic, records(300, 500))

    logs: dict[str, str] = {}

    def copied() -> list[int]:
        """How many records each run that has ended has copied."""
        for run_id in {run["dag_run_id"] for run in flow.ended()} - logs.keys():
            logs[run_id] = flow.log(run_id, "replicate_window")
        found = [re.search(r"Replicated ([\d,]+) records|Spark was not needed", log) for log in logs.values()]
        return [int((each[1] or "0").replace(",", "")) for each in found if each]

    flow.client.wait(lambda: sum(copied()) == 800 and 0 in copied(), every=3)  # an idle run does without Spark
    flow.client.pause(flow.dag_id)
    assert flow.assert_equal() == 800
    assert flow.verified() == 2
    run_id = first["dag_run_id"]
    expected = dict.fromkeys(
        ("sync_topics", "replicate_window", "verify_window", "emit_offset_syncs", "emit_checkpoints", "done"), "success"
    )
    assert flow.states(run_id) == expected | {"next_window": "skipped", "ask_to_decide": "skipped"}
    assert flow.client.xcom(flow.dag_id, run_id, "replicate_window").startswith(f"{run_id}#1-")
    # Others are told which topics have received what.
    events = flow.client.request("GET", "/assets/events", source_dag_id=flow.dag_id, source_run_id=run_id)
    (event,) = events["asset_events"]
    assert event["uri"] == f"kafka://{flow.west.bootstrap}/scheduled.{flow.topic}"
    assert event["extra"]["records"] == 500 and event["extra"]["offsets"].keys() == {"0", "1"}
    log = flow.log(run_id, "replicate_window")
    assert "Replicated 500 records" in log and "scheduled.scheduled-orders" in log
    # The gate's Data Docs are linked, for those who have logged in.
    page = flow.page(run_id, "verify_window", "data_docs")
    assert page.status_code == 200 and "all 2 partitions passed" in page.text
    assert "sandbox" in page.headers["content-security-policy"]
    assert httpx.get(str(page.url), trust_env=False, timeout=120).status_code == 401
    syncs = read_all(flow.west, "mm2-offset-syncs.scheduled.internal")
    keys = {record.key for part in syncs.values() for record in part}
    assert {key[2:-4] for key in keys if key} == {flow.topic.encode()}
    assert_no_secret_is_kept(flow)


@pytest.mark.long  # its parts: test_following_tasks, flows/test_incidents, test_tasks, web/test_collector
@pytest.mark.flow("gate")
def test_a_failed_gate_holds_the_partition_until_it_passes(flow: AirflowFlow) -> None:
    suite = flow.under_test.expectations / "gate.yaml"
    suite.write_text(GATE)
    produce(flow.east, flow.topic, records(50), partition=0)
    produce(flow.east, flow.topic, records(5), partition=1)
    first = flow.first_run()
    run_id = first["dag_run_id"]
    assert first["state"] == "failed"
    assert flow.states(run_id)["verify_window"] == "failed"
    assert flow.states(run_id)["replicate_window"] == "success"
    log = flow.log(run_id, "verify_window")
    assert "gate-orders-0" in log and "expect_column_values_to_be_between" in log and "at-most-ten" in log
    assert "Stocks must stay quiet" in " ".join(log.split()) and "airmirror verify --flow 'gate->west'" in log
    assert flow.verified() == 1  # partition 1 resumed
    page = flow.page(run_id, "verify_window", "data_docs")  # of the red task
    assert page.status_code == 200 and "Stocks must stay quiet" in page.text and "did not pass" in page.text
    # Somebody is asked, in an Airflow in which nobody has switched anything on but the flow itself.
    (incident,) = flow.client.runs("decide.gate.west")
    question = flow.question(incident["dag_run_id"])
    assert "| gate-orders | 0 | 0 to 49 | 50 |" in question["body"] and "can't be undone" in question["body"]
    assert [user["id"] for user in question["assigned_users"]] == ["admin", "ann"]
    asking = flow.log(run_id, "ask_to_decide")
    for told in (asking, log):  # the red log itself leads to the question
        assert f"/dags/decide.gate.west/runs/{incident['dag_run_id']}/tasks/ask/required_actions" in told
    assert "is paused" not in asking
    # The next window leaves the held partition out, and says so; it is not tried again in vain.
    produce(flow.east, flow.topic, records(5, 50), partition=0)
    produce(flow.east, flow.topic, records(5, 5), partition=1)
    # An alert of Grafana starts that window.
    from_grafana = flow.under_test.alert(GRAFANA, "grafana")
    (answer,) = from_grafana.json()["alerts"]
    assert from_grafana.status_code == 200 and answer["outcome"] == "started", answer
    second = answer["run_id"]
    assert flow.client.wait_for_run(flow.dag_id, second) == "failed"
    assert "Left out: gate-orders-0: held from offset 0" in flow.log(second, "replicate_window")
    # The same incident: told by one task, as what it is, and asked about once.
    states = flow.states(second)
    assert (states["replicate_window"], states["verify_window"], states["ask_to_decide"]) == (
        "success",
        "failed",
        "skipped",
    )
    again = " ".join(flow.log(second, "verify_window").split())
    assert "1 partition still held by the gate, nothing new" in again and f"first in {run_id}" in again
    assert len(flow.client.runs("decide.gate.west")) == 1
    shown = flow.metrics()

    def labels(partition: int) -> str:
        return f'flow="gate->west",partition="{partition}",source="gate",target="west",topic="gate-orders"'

    assert shown[f'airmirror_held{{by="gate",{labels(0)}}}'] == 1
    assert shown[f"airmirror_lag_records{{{labels(0)}}}"] == 5 and shown[f"airmirror_lag_seconds{{{labels(0)}}}"] > 1e6
    assert shown[f"airmirror_records_total{{{labels(1)}}}"] == 10 and f"airmirror_records_total{{{labels(0)}}}" in shown
    remote = read_all(flow.west, f"gate.{flow.topic}")
    assert {number: len(found) for number, found in remote.items()} == {0: 50, 1: 10}
    # The cause is mended: the task judges again, reading the target.
    suite.unlink()
    flow.client.clear(flow.dag_id, run_id, "verify_window")
    flow.client.wait(lambda: flow.states(run_id)["verify_window"] == "success")
    assert flow.verified() == 2
    shown = flow.metrics()
    assert [shown[f"airmirror_records_total{{{labels(number)}}}"] for number in (0, 1)] == [50, 10]
    # Two runs failed; somebody was told of the first one.
    told = flow.under_test.directory / "notified"
    notified = flow.client.wait(lambda: told.exists() and told.read_text().splitlines())
    assert notified == [f"{flow.dag_id} {run_id}"]
    assert [shown[f"airmirror_lag_records{{{labels(number)}}}"] for number in (0, 1)] == [5, 0]  # left to the next one
    assert not any(name.startswith("airmirror_held") for name in shown)
    of_flow = 'flow="gate->west",{}source="gate",target="west"'
    assert shown["airmirror_judged_partitions_total{" + of_flow.format('result="held",') + "}"] >= 1
    assert shown["airmirror_windows_total{" + of_flow.format('outcome="incomplete",') + "}"] == 1
    assert shown["airmirror_last_verified_timestamp_seconds{" + of_flow.format("") + "}"] > 1.7e9


@pytest.mark.long  # test_selection has the same without Airflow, in seconds
@pytest.mark.flow("form")
def test_the_trigger_form_narrows_a_run_down(flow: AirflowFlow) -> None:
    suite = flow.under_test.expectations / "broken.yaml"
    suite.write_text(GATE.replace("expect_column_values_to_be_between", "expect_colum_values_to_be_betwen"))
    produce(flow.east, flow.topic, records(40), partition=0)
    produce(flow.east, flow.topic, records(40), partition=1)
    first = flow.first_run()
    assert first["state"] == "failed"
    log = flow.log(first["dag_run_id"], "sync_topics")
    assert "broken.yaml" in log and "Retry policy decision" in log
    assert flow.client.tasks(flow.dag_id, first["dag_run_id"])["sync_topics"]["try_number"] == 1  # final: not again
    suite.unlink()
    dry, state = flow.run({"dry_run": True})
    assert state == "success" and flow.states(dry)["replicate_window"] == "skipped"
    assert "Would replicate form-orders-0" in flow.log(dry, "sync_topics")
    wrong, state = flow.run({"topics": ["form-ordres"]})
    assert state == "failed" and "does not mirror form-ordres" in flow.log(wrong, "sync_topics")
    _, state = flow.run({"partitions": [1], "topics": [flow.topic], "verify": "acks"})
    assert state == "success"
    assert {n: len(found) for n, found in read_all(flow.west, f"form.{flow.topic}").items()} == {0: 0, 1: 40}


@pytest.mark.long  # test_window_tasks has the tasks that decide it
@pytest.mark.flow("cut")
def test_a_window_that_was_cut_is_followed_by_the_next_at_once(flow: AirflowFlow) -> None:
    produce(flow.east, flow.topic, records(120, size=4000), records_per_batch=20)  # more than a window takes
    first = flow.first_run()
    assert flow.states(first["dag_run_id"])["next_window"] == "success"
    flow.client.wait(
        lambda: (ended := flow.ended()) and flow.states(ended[-1]["dag_run_id"])["next_window"] == "skipped", 180
    )
    assert len(flow.ended()) > 1 and flow.assert_equal() == 120


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.flow("continuous")
def test_continuous_windows_follow_one_another_and_wait_only_when_there_is_nothing(flow: AirflowFlow) -> None:
    produce(flow.east, flow.topic, records(100))
    flow.client.unpause(flow.dag_id)
    flow.client.wait(lambda: len(flow.ended()) > 1)
    produce(flow.east, flow.topic, records(100, 100))
    seen = len(flow.ended())
    flow.client.wait(lambda: len(flow.ended()) > seen + 2)
    # A run is late that takes longer than the last ten on average: after a slow first one that takes ten runs.
    flow.client.wait(lambda: any(value >= 1 for name, value in flow.metrics().items() if "late_runs" in name), 600)
    flow.client.pause(flow.dag_id)
    assert flow.assert_equal() == 200
    waited = {}
    for run in flow.ended():
        tasks = flow.client.tasks(flow.dag_id, run["dag_run_id"])
        copied = "Spark was not needed" not in flow.log(run["dag_run_id"], "replicate_window")
        assert run["state"] == "success" and (tasks["idle"]["state"] == "skipped") is copied
        waited.setdefault(copied, []).append(tasks["idle"]["duration"] or 0)
    assert len(waited[True]) == 2 and min(waited[False]) >= 3


@pytest.mark.long
@pytest.mark.flow("following")
def test_a_window_that_follows_is_verified_and_moves_groups_meanwhile(flow: AirflowFlow) -> None:
    """The first one to its end; the second one is ended by a pause, and leaves nothing open."""
    group, remote = "following-billing", f"following.{flow.topic}"

    def moved(position: int) -> None:
        commit(flow.east, group, {(flow.topic, 0): position})
        await_committed(flow.west, group, {(remote, 0): position}, PATIENCE_SECONDS)

    produce(flow.east, flow.topic, records(200), partition=0)
    flow.client.unpause(flow.dag_id)
    run_id = flow.client.wait(lambda: flow.client.runs(flow.dag_id))[0]["dag_run_id"]
    flow.wait_until_running(run_id)
    moved(100)
    assert flow.states(run_id)["replicate_window"] == "running", "verified while it follows"
    await_readable(flow.west, remote, 200)
    produce(flow.east, flow.topic, records(50, 200), partition=0)
    produce(flow.east, flow.topic, records(50, 250), partition=1)
    await_readable(flow.west, remote, 300)
    assert flow.client.wait_for_run(flow.dag_id, run_id) == "success"
    states = flow.states(run_id)
    assert {states[name] for name in ("replicate_window", "verify_window", "emit_offset_syncs")} == {"success"}
    assert "Meanwhile, sync_group_offsets: 1 position of groups written" in flow.log(run_id, "replicate_window")
    assert flow.assert_equal() == 300 and flow.verified() == 2
    events = flow.client.request("GET", "/assets/events", source_dag_id=flow.dag_id, source_run_id=run_id)
    (event,) = events["asset_events"]
    assert event["extra"]["records"] == 300 and event["extra"]["offsets"].keys() == {"0", "1"}
    second = flow.client.trigger(flow.dag_id, None)
    flow.wait_until_running(second)
    produce(flow.east, flow.topic, records(10, 300), partition=0)
    await_readable(flow.west, remote, 310)
    flow.client.pause(flow.dag_id)
    flow.client.wait(lambda: flow.states(second)["replicate_window"] == "failed", every=0.2)
    assert "is paused" in flow.log(second, "replicate_window")
    assert end_offsets(flow.west, remote, "read_committed") == end_offsets(flow.west, remote)  # no transaction is open


@pytest.mark.long
@pytest.mark.flow("growing")
def test_a_window_starts_when_the_source_has_grown(flow: AirflowFlow) -> None:
    flow.first_run()
    # A watcher begins when Airflow parses a DAG that is switched on; here it parses the file once an hour.
    dag = flow.client.request("GET", f"/dags/{flow.dag_id}")
    flow.client.request("PUT", f"/parseDagFile/{dag['file_token']}")
    seen = {run["dag_run_id"] for run in flow.ended()}
    produced = 0

    def grown() -> list[dict[str, Any]]:
        nonlocal produced
        # Until it is seen: the watcher begins to look some time after that.
        produce(flow.east, flow.topic, records(60, produced))
        produced += 60
        return [run for run in flow.ended() if run["dag_run_id"] not in seen]

    run = flow.client.wait(grown, 240, every=3)[0]
    assert run["run_type"] == "asset_triggered" and run["state"] == "success"
    flow.client.wait(lambda: flow.verified() == 2)


@contextmanager
def arguments_noted() -> Iterator[set[str]]:
    """The arguments of every process of this machine that can be seen meanwhile, as anybody there could."""
    over, arguments = threading.Event(), set[str]()

    def note() -> None:
        while not over.wait(0.25):
            for process in psutil.process_iter():
                with suppress(psutil.Error):
                    arguments.add(" ".join(process.cmdline()))

    watcher = threading.Thread(target=note)
    watcher.start()
    try:
        yield arguments
    finally:
        over.set()
        watcher.join()


def assert_no_secret_is_kept(flow: AirflowFlow) -> None:
    """No file but the configuration has one, nor Airflow's database."""
    directories = [flow.under_test.directory, *(server.token_file.parent for server in flow.under_test.spark.values())]
    looked = [
        path
        for directory in directories
        for path in directory.rglob("*")
        if path.is_file() and path.name != "mirror.properties"
    ]
    assert any(path.name == "ledger.db" for path in looked) and any("spark" in str(path) for path in looked)
    assert [path.name for path in looked if _has_secret(path)] == []
    assert flow.dag_id in (content := flow.under_test.database()) and SECRET not in content


def _has_secret(path: Path) -> bool:
    try:
        return SECRET.encode() in path.read_bytes()
    except FileNotFoundError:  # SQLite's own files go with the process that has them
        return False

"""Lineage from topic to topic."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from airmirror.on_airflow.dags.assets import lineage_of
from airmirror.on_airflow.tasks.window import Received
from airmirror_local.processes import start_process, wait_until_ready
from on_airflow.conftest import AirflowFlow
from support.topics import Record, produce


def test_lineage() -> None:
    found = lineage_of(
        [
            Received(
                topic="orders",
                remote_topic="east.orders",
                source="one:9092",
                target="two:9092",
                records=5,
                offsets={0: (0, 5)},
            )
        ]
    )
    assert [(item.namespace, item.name) for item in found.inputs] == [("kafka://one:9092", "orders")]
    assert [(item.namespace, item.name) for item in found.outputs] == [("kafka://two:9092", "east.orders")]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.flow("lineage")
def test_airflow_emits_openlineage_events_from_topic_to_topic(flow: AirflowFlow, tmp_path: Path) -> None:
    """A run of ``airflow dags test`` in a process with a transport: in the others' Airflow every task would emit events.

    How it ends tells nothing: with a deadline Airflow 3.3.2's fails after the run has succeeded, and the worker that it forks for
    the run's own event may hang for ever.
    """
    produce(flow.east, flow.topic, [Record(b"v%d" % n) for n in range(30)])
    stack, written = flow.under_test.stack, tmp_path / "events"
    transport = {"type": "file", "log_file_path": str(written), "append": True}
    environment = {**stack.environment, "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport)}
    command = [sys.executable, "-m", "airflow", "dags", "test", flow.dag_id]

    def completed() -> list[Any]:
        lines = written.read_text().splitlines(keepends=True) if written.exists() else []
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        ours = f"{flow.dag_id}.verify_window"
        return [event for event in events if event["eventType"] == "COMPLETE" and event["job"]["name"] == ours]

    process = start_process("dags test", command, tmp_path / "log", environment=environment)
    try:
        wait_until_ready(process, lambda: bool(completed()), 400)
    finally:
        process.stop()
    (event,) = completed()

    def named(side: str) -> list[tuple[str, str]]:
        return [(dataset["namespace"], dataset["name"]) for dataset in event[side]]

    assert named("inputs") == [(f"kafka://{flow.east.bootstrap}", flow.topic)]
    assert named("outputs") == [(f"kafka://{flow.west.bootstrap}", f"{flow.source}.{flow.topic}")]

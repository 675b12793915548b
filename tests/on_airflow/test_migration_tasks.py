"""The task that plans a migration, as its operator calls it: the page, the JSON, and what the log says."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from airmirror.flows.prepare import Opened
from airmirror.on_airflow.tasks import runbooks
from airmirror.runbooks.migration import inventory
from airmirror_local.brokers import Broker
from support.approvals import run_of, tasks_of
from support.flows import mirror
from support.kept import json_of, kept, ledger_in
from support.topics import Record, produce


def test_a_run_has_its_page(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    flow = mirror(east, west, tmp_path, config={"retention.ms": "3600000"})
    produce(east, flow.topic, [Record(b"v")], partition=0)
    flow.run()

    @contextmanager
    def opened_flow(*_: object) -> Iterator[Opened]:
        yield flow.opened

    monkeypatch.setattr(inventory, "MEASURED_SECONDS", 0.1)
    monkeypatch.setattr(runbooks, "opened_flow", opened_flow)
    monkeypatch.setenv("AIRMIRROR_LEDGER", ledger_in(tmp_path))
    task = tasks_of(flow.flow, "migration")["plan"]
    context = run_of({"runbook": "migration", "verb": "plan", "reason": "moving day", "takes": 0.5, "steps": None})
    with caplog.at_level(logging.INFO):
        task.execute(context)
    assert task.page.startswith(f"migration-plans/{flow.flow.name}/")
    text = kept(task.page)
    assert "Migration plan of" in text and flow.remote_topic in text and "<script" not in text
    assert json.loads(kept(json_of(task.page)))["sections"]["names"] == [
        {"on_the_source": flow.topic, "on_the_target": flow.remote_topic}
    ]
    assert "warn records outlive the migration: kept for less than the 12 h" in caplog.text
    assert "1 move group of 1 topic" in caplog.text and "ok a flow" not in caplog.text

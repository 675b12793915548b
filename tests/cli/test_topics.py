"""``airmirror topics``: the drift for people and for programs, and the plan that the next window carries out."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

from typer.testing import CliRunner

from airmirror.cli.main import app
from airmirror.clusters.admin.alteration import alter_configs
from airmirror.clusters.admin.client import connect
from airmirror.clusters.admin.description import ConfigChange
from airmirror.config import load
from airmirror.topics.sync import apply, look
from airmirror_local.brokers import Broker
from support.topics import create_topic


def test_drift_and_plan(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic = create_topic(east, f"drift-{uuid4().hex[:8]}", 2, {"retention.ms": "1000000"})
    file = tmp_path / "mirror.properties"
    file.write_text(
        f"clusters = east, west\neast.bootstrap.servers = {east.bootstrap}\nwest.bootstrap.servers = {west.bootstrap}\n"
        f"east->west.enabled = true\neast->west.topics = {topic}\nheartbeats.replication.enabled = false\n"
        "replication.factor = 1\n"
    )

    def topics(*options: str) -> str:
        ledger = f"sqlite:///{tmp_path / 'ledger.db'}"
        command = ["topics", "--flow", "east->west", "--config", str(file), "--ledger", ledger, *options]
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
        return result.stdout

    before = json.loads(topics("--plan", "--json"))
    assert [(row["what"], row["outcome"]) for row in before["drift"]] == [("topic", "created with 2 partitions")]
    assert "no authorizer" in before["acls_not_synced"]
    flow = load(file).flow("east->west")
    apply(flow, look(flow))
    assert json.loads(topics("--plan", "--json"))["drift"] == []
    assert "nothing to do, 1 topic" in topics("--plan")
    remote = f"east.{topic}"
    edits = [ConfigChange(remote, "retention.ms", None, "5"), ConfigChange(remote, "min.insync.replicas", None, "2")]
    alter_configs(connect(flow.target), edits)
    rows = {row["what"]: row for row in json.loads(topics("--json"))["drift"]}
    assert (rows["retention.ms"]["outcome"], rows["retention.ms"]["will_change"]) == ("1000000", True)
    assert (rows["min.insync.replicas"]["outcome"], rows["min.insync.replicas"]["will_change"]) == ("unchanged", False)
    assert "config.properties.exclude" in rows["min.insync.replicas"]["reason"]
    assert [row["what"] for row in json.loads(topics("--plan", "--json"))["drift"]] == ["retention.ms"]
    shown = topics()
    assert "retention.ms" in shown and "min.insync.replicas" in shown

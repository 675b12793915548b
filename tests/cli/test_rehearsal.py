"""``airmirror failover rehearse``: what is printed, the exit status, and that it needs a flow that is not frozen."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

from airmirror_local.brokers import Broker
from support.deployment import Deployment
from support.following import numbered
from support.groups import commit
from support.topics import create_topic, produce


def test_the_command_prints_the_report_and_fails_where_a_failover_would(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    topic, group = create_topic(east, f"orders-{uuid4().hex[:8]}"), f"g-{uuid4().hex[:8]}"
    produce(east, topic, numbered(20), partition=0)
    commit(east, group, {(topic, 0): 15})
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic, groups=group)
    file = tmp_path / "report"
    nothing = command("failover", "rehearse", "--write", str(file))
    assert nothing.exit_code == 1 and "stop something was replicated" in nothing.stdout, nothing.output
    planned = ("--way", "planned", "--reason", "r", "--by", "ada", "--wait", "60", "--write", str(tmp_path / "over"))
    over = command("failover", "run", *planned, "--yes")
    assert over.exit_code == 0, over.output
    frozen = command("failover", "rehearse", "--write", str(file))
    assert frozen.exit_code == 1 and "was frozen by ada" in frozen.output
    undo = ("undo", "--reason", "r", "--by", "ada", "--yes", "--write", str(tmp_path / "undone"))
    assert command("failover", *undo).exit_code == 0
    good = command("failover", "rehearse", "--write", str(file))
    assert good.exit_code == 0 and "0 of 20 records missing, 1 of 1 group exact" in good.stdout, good.output
    assert json.loads(file.with_name("report.json").read_text())["is_good"] and file.with_name("report.html").exists()

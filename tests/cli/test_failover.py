"""``airmirror failover run`` and ``undo``: what is printed, the exit status, and that nothing is done without ``--yes``."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

from airmirror_local.brokers import Broker
from airmirror_local.ports import LOOPBACK, free_port
from support.deployment import Deployment
from support.following import numbered
from support.groups import commit, committed
from support.topics import assert_mirrored, create_topic, produce

WHY = ("--reason", "moving day", "--by", "ada")


def test_a_planned_failover_is_shown_done_and_undone(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic, group = create_topic(east, f"orders-{uuid4().hex[:8]}"), f"g-{uuid4().hex[:8]}"
    produce(east, topic, numbered(20), partition=0)
    commit(east, group, {(topic, 0): 15})
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic, groups=group, **{"failover.quiet.ms": "0"})
    remote = f"{command.alias}.{topic}"
    dry = command("failover", "run", "--way", "planned", *WHY)
    assert dry.exit_code == 1 and "Nothing was written" in dry.stdout and committed(west, group) == {}
    file = tmp_path / "report"
    done = command("failover", "run", "--way", "planned", *WHY, "--yes", "--write", str(file))
    assert done.exit_code == 0, done.output
    assert "failed over (planned)" in done.stdout and "1 position of groups moved, 0 left" in done.stdout
    assert remote in done.stdout and "0 offsets are known not to be verified" in done.stdout
    told = json.loads(file.with_name("report.json").read_text())
    assert told["is_good"] and told["by"] == "ada" and file.with_name("report.html").exists()
    assert assert_mirrored(east, topic, west, remote) == 20 and committed(west, group) == {(remote, 0): 15}
    disaster = command("failover", "run", "--way", "disaster", *WHY, "--yes")
    assert disaster.exit_code == 1 and "its source answers" in disaster.output
    text = command.file.read_text()
    command.file.write_text(text.replace(east.bootstrap, f"{LOOPBACK}:{free_port()}"))
    gone = command("failover", "run", "--way", "planned", *WHY, "--yes")
    assert gone.exit_code == 1 and "needs its source" in gone.output and "--way disaster" in gone.output
    assert "would be unfrozen" in command("failover", "undo", *WHY).stdout
    assert committed(west, group) == {(remote, 0): 15}
    undone = command("failover", "undo", *WHY, "--yes", "--write", str(file))
    assert undone.exit_code == 0 and f"{command.flow} is unfrozen" in undone.stdout and committed(west, group) == {}

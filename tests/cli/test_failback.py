"""``airmirror failback plan`` and ``rescue``: what is printed, the exit status, and that nothing is done without ``--yes``."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

from airmirror_local.brokers import Broker
from support.deployment import Deployment
from support.following import numbered
from support.topics import create_topic, produce, read_all

WHY = ("--reason", "INC-7", "--by", "ada")


def test_what_diverged_is_shown_and_rescued(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic = create_topic(east, f"orders-{uuid4().hex[:8]}")
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic, **{"failover.quiet.ms": "0"})
    remote = f"{command.alias}.{topic}"
    produce(east, topic, numbered(20), partition=0)
    opened = command("failback", "rescue", *WHY, "--yes")
    assert opened.exit_code == 1 and "is open, so that its next window copies" in opened.output
    file = tmp_path / "plan"
    over = command("failover", "run", "--way", "planned", *WHY, "--yes", "--write", str(file))
    assert over.exit_code == 0, over.output
    equal = command("failback", "plan")
    assert equal.exit_code == 0 and "0 records of the source never crossed" in equal.stdout, equal.output
    produce(east, topic, numbered(5, 20), partition=0)
    produce(west, remote, numbered(3, 100), partition=0)
    plan = command("failback", "plan", "--write", str(file))
    assert plan.exit_code == 1 and f"never crossed {topic}-0: 20 to 24 (" in plan.stdout, plan.output
    assert f"since {remote}-0: 21 to 23 (" in plan.stdout and "3 were written on the target since" in plan.stdout
    assert json.loads(file.with_name("plan.json").read_text())["never"] == 5 and file.with_name("plan.html").exists()
    dry = command("failback", "rescue", *WHY)
    assert dry.exit_code == 1 and "Nothing was written" in dry.stdout and f"{remote}.rescued." in dry.stdout
    done = command("failback", "rescue", *WHY, "--yes", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    (row,) = told["rescue"]
    assert row["records"] == 5 and told["plan"]["rescued"] == 5 and told["done"]
    assert [each.value for each in read_all(west, row["into"])[0]] == [each.value for each in numbered(5, 20)]
    again = command("failback", "rescue", *WHY, "--yes")
    assert again.exit_code == 0 and "nothing is left" in again.stdout

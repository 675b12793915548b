"""``airmirror migration`` from the rehearsal to the undo over the reverse flow: what is printed, and the exit status."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

from airmirror_local.brokers import Broker
from support.deployment import Deployment
from support.following import numbered
from support.groups import commit, committed, member
from support.topics import create_topic, produce, read_all

DECIDED = ("--reason", "moving day", "--by", "ada", "--yes")


def test_a_move_group_is_rehearsed_moved_and_moved_back(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic, group = create_topic(east, f"orders-{uuid4().hex[:8]}"), f"g-{uuid4().hex[:8]}"
    produce(east, topic, numbered(20), partition=0)
    commit(east, group, {(topic, 0): 15})
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic, groups=group, **{"failover.quiet.ms": "0"})
    remote, back = f"{command.alias}.{topic}", f"west->{command.alias}"
    lines = (
        f"{command.flow}.move.shop.topics = {topic}",
        f"{command.flow}.move.quiet.ms = 0",
        f"{command.flow}.move.reverse = true",
        f"{back}.enabled = true",
        f"{back}.topics = nothing-of-its-own",
        f"{back}.target.cluster.other.aliases = .*",  # other tests have other names for these clusters
    )
    command.file.write_text("\n".join((command.file.read_text(), *lines)))
    shop = ("--move", "shop")
    steps = [word for step in ("mirror", "check_groups", "cut_over_consumers") for word in ("--step", step)]
    assert command("migration", "run", *shop, *DECIDED, "--wait", "0", *steps).exit_code == 0
    with member(west, group, remote):
        for decided in (DECIDED[:-1], DECIDED):  # it would not be done, and it is not done
            refused = command("migration", "undo", *shop, *decided)
            assert refused.exit_code == 1 and group in refused.output, refused.output
    assert committed(west, group) == {(remote, 0): 15}
    file = tmp_path / "report"
    assert command("migration", "undo", *shop, *DECIDED, "--write", str(file)).exit_code == 0
    good = command("migration", "rehearse", *shop, "--write", str(file))
    assert good.exit_code == 0 and "20 records equal on both sides, 1 of 1 group exact" in good.stdout, good.output
    assert json.loads(file.with_name("report.json").read_text())["is_good"] and file.with_name("report.html").exists()
    moved = command("migration", "run", *shop, *DECIDED, "--wait", "0", "--write", str(file))
    assert moved.exit_code == 0 and "1 topic can return" in moved.stdout and f"{back} has begun" in moved.stdout, (
        moved.output
    )
    shown = command("migration", "run", *shop, *DECIDED[:-1])
    assert "copies back what is written on west" in shown.stdout, shown.output
    assert command("migration", "rehearse", *shop).exit_code == 1, "nothing is left to rehearse"
    produce(west, remote, numbered(7, 100), partition=0)
    said = command("migration", "undo", *shop, *DECIDED[:-1])
    assert said.exit_code == 0 and "7 records were written there" in said.stdout and "they return" in said.stdout
    undone = command("migration", "undo", *shop, *DECIDED, "--write", str(file))
    assert undone.exit_code == 0 and "shop is undone" in undone.stdout, undone.output
    values = [[each.value for each in read_all(cluster, name)[0]] for cluster, name in ((east, topic), (west, remote))]
    assert values[0] == values[1] and len(values[0]) == 27 and committed(east, group) == {(topic, 0): 15}

"""``airmirror failback``: what is printed, the exit status, and that nothing is done without ``--yes``."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from airmirror.runbooks.failback import steps
from airmirror_local.brokers import Broker
from support.deployment import Deployment
from support.disks import alter_value
from support.following import numbered
from support.groups import commit, committed
from support.sides import Sides
from support.topics import assert_mirrored, create_topic, produce, read_all

WHY = ("--reason", "INC-7", "--by", "ada")


def test_what_diverged_is_shown_and_rescued(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic = create_topic(east, f"orders-{uuid4().hex[:8]}")
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic, **{"failover.quiet.ms": "0"})
    remote = f"{command.alias}.{topic}"
    produce(east, topic, numbered(20), partition=0)
    opened = command("failback", "run", "--step", "rescue", *WHY, "--yes")
    assert opened.exit_code == 1 and "is not frozen, so that its next window copies" in opened.output
    file = tmp_path / "plan"
    over = command("failover", "run", "--way", "planned", *WHY, "--yes", "--write", str(file))
    assert over.exit_code == 0, over.output
    none, back = command("failback", "plan"), f"west->{command.alias}"
    assert none.exit_code == 1 and "stop there is a reverse flow" in none.stdout, none.output
    command.file.write_text(f"{command.file.read_text()}\n{back}.enabled = true\n{back}.topics = nothing\n")
    equal = command("failback", "plan")
    assert equal.exit_code == 0 and "0 records of the source not replicated" in equal.stdout, equal.output
    produce(east, topic, numbered(5, 20), partition=0)
    produce(west, remote, numbered(3, 100), partition=0)
    plan = command("failback", "plan", "--write", str(file))
    assert plan.exit_code == 1 and "Not replicated" in plan.stdout and "20 to 24" in plan.stdout, plan.output
    assert "stop all records of the source are replicated" in plan.stdout
    assert (
        "Written on the target since" in plan.stdout
        and "21 to 23" in plan.stdout
        and "3 written on the target since" in plan.stdout
    )
    numbers = json.loads(file.with_name("plan.json").read_text())["numbers"]
    assert {"name": "records not replicated", "value": 5} in numbers and file.with_name("plan.html").exists()
    dry = command("failback", "run", "--step", "rescue", *WHY)
    assert dry.exit_code == 1 and "Nothing was written" in dry.stdout and f"{remote}.rescued." in dry.stdout
    done = command("failback", "run", "--step", "rescue", *WHY, "--yes", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)["lines"]
    assert told[0]["said"].startswith(f"{topic}-0: 5 records copied to ") and "nothing is left" in told[1]["said"]
    into = told[0]["said"].rpartition(" ")[2]
    assert [each.value for each in read_all(west, into)[0]] == [each.value for each in numbered(5, 20)]
    again = command("failback", "run", "--step", "rescue", *WHY, "--yes")
    assert again.exit_code == 0 and "nothing is left" in again.stdout
    assert command("failback", "plan").exit_code == 0, "what is left was written on the target, and returns"


@pytest.mark.long
def test_a_failback_is_shown_begun_and_done(sides: Sides, tmp_path: Path) -> None:
    east, west = sides.east, sides.west
    topic, group = create_topic(east, "orders"), f"g-{uuid4().hex[:8]}"
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic, groups=group, **{"failover.quiet.ms": "0"})
    remote, back = f"{command.alias}.{topic}", f"west->{command.alias}"
    produce(east, topic, numbered(20), partition=0)
    commit(east, group, {(topic, 0): 12})
    file = tmp_path / "report"
    over = command("failover", "run", "--way", "planned", *WHY, "--yes", "--write", str(file))
    assert over.exit_code == 0, over.output
    none = command("failback", "run", *WHY)
    assert none.exit_code == 1 and f"add `{back}.enabled = true`" in none.output
    command.file.write_text(f"{command.file.read_text()}\n{back}.enabled = true\n{back}.topics = nothing\n")
    produce(west, remote, numbered(5, 100), partition=0)
    commit(west, group, {(remote, 0): 15})
    dry = command("failback", "run", *WHY)
    assert dry.exit_code == 0 and "Nothing was written" in dry.stdout and remote in dry.stdout, dry.output
    begun = command("failback", "run", *WHY, "--step", "return", "--yes")
    assert begun.exit_code == 0 and f"windows of {back} copy back what was written" in begun.stdout, begun.output
    assert "it has begun already" in command("failback", "run", *WHY, "--step", "return", "--yes").stdout
    assert len(read_all(east, topic)[0]) == 20
    opens = command("flow", "unfreeze", *WHY, "--yes")
    assert opens.exit_code == 1 and f"{topic} return to its source; finish that first" in opens.output
    done = command("failback", "run", *WHY, "--yes", "--write", str(file))
    assert done.exit_code == 0, done.output
    assert "5 records returned to 1 partition, 1 position of groups moved, 0 left" in done.stdout
    told = json.loads(file.with_name("report.json").read_text())
    assert told["is_good"] and told["by"] == "ada" and told["sections"]["returned"][0]["records"] == 5
    assert "INC-7" in file.with_name("report.html").read_text()
    assert assert_mirrored(west, remote, east, topic) == 25 and committed(east, group) == {(topic, 0): 15}
    again = command("failback", "run", *WHY, "--yes")
    assert again.exit_code == 0 and "there is nothing to fail back" in again.stdout


@pytest.mark.long  # tests/failback/test_differing.py has the error, its command, and what that does
def test_the_command_that_an_error_prints_leads_out(
    sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What returned is another record on the source by now: it is listed, and the flow is unfrozen without it when a person says
    so."""
    east, west = sides.east, sides.west
    topic = create_topic(east, "orders")
    back = {"failover.quiet.ms": "0", "groups": "none"}
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic, **back)
    reverse = f"west->{command.alias}"
    command.file.write_text(f"{command.file.read_text()}\n{reverse}.enabled = true\n{reverse}.topics = nothing\n")
    produce(east, topic, numbered(5), partition=0)
    file = str(tmp_path / "report")
    over = command("failover", "run", "--way", "planned", *WHY, "--yes", "--write", file)
    assert over.exit_code == 0, over.output
    produce(west, f"{command.alias}.{topic}", numbered(5, 100), partition=0)
    real = steps.unfreeze_step

    def altered(*given: Any) -> Any:
        alter_value(east, topic, 0, b"v103")
        return real(*given)

    with monkeypatch.context() as patched:
        patched.setattr(steps, "unfreeze_step", altered)
        failed = command("failback", "run", *WHY, "--yes", "--write", file)
    shown, done = (shlex.split(each) for each in re.findall(r"`airmirror (failback run [^`]*)`", failed.output))
    assert failed.exit_code == 1 and "stays frozen" in failed.output, failed.output
    listed = command(*shown, flow=False)
    at = read_all(east, topic)[0][-2].offset
    assert listed.exit_code == 1 and "Differs on both sides" in listed.stdout and "Nothing was written" in listed.stdout
    told = json.loads(command(*shown, "--json", flow=False).stdout)
    assert [(each["source_first"], each["count"]) for each in told["sections"]["differ"]] == [(at, 1)]
    went = command(*done, "--write", file, flow=False)
    assert went.exit_code == 1 and f"offsets {at}" in went.stdout and "The flow is unfrozen" in went.stdout, went.output
    assert "there is nothing to fail back" in command("failback", "run", *WHY, "--yes").stdout

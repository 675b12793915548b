"""``airmirror groups``, ``groups apply`` and ``translate``, as a person types them."""

from __future__ import annotations

import json
import shlex
import subprocess
import uuid
from pathlib import Path

import pytest
from typer.testing import CliRunner

from airmirror.cli.main import app
from airmirror_local.brokers import Broker
from airmirror_local.jars import classpath
from airmirror_local.java import find_java
from cli.test_commands import Deployment, slots_in_this_process
from support.groups import commit, committed
from support.topics import Record, create_topic, produce

__all__ = ["slots_in_this_process"]  # the fixture: windows without Spark


def test_groups_are_shown_translated_applied_and_undone(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic, group = create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", 2), f"billing-{uuid.uuid4().hex[:8]}"
    start = 1_700_000_000_000
    produce(east, topic, [Record(b"v%d" % n, timestamp=start + n * 1000) for n in range(100)], partition=0)
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic)
    remote = f"{command.alias}.{topic}"
    assert command("run-window").exit_code == 0
    commit(east, group, {(topic, 0): 40, (topic, 1): 0})
    commit(west, group, {(remote, 0): 10})

    (first, second) = json.loads(command("groups", "--group", group, "--json").stdout)
    assert (first["position"], first["lag"], first["translation"], first["exact"]) == (40, 60, 40, True)
    assert (first["on_target"], first["remote_topic"], first["reason"]) == (10, remote, "")
    assert first["target_lag"] == 91 and first["lag_seconds"] > 0 and first["target_lag_seconds"] > 0  # a marker
    assert (second["lag"], second["lag_seconds"], second["on_target"]) == (0, 0.0, None)
    shown = command("groups", "--group", group)
    assert shown.exit_code == 0 and "exact" in shown.stdout and "isolation.level=read_committed" in shown.stdout

    at_time = "2023-11-14T22:13:30+00:00"  # ten seconds after the start
    (found, _) = json.loads(command("translate", "--group", group, "--at", at_time, "--json").stdout)
    assert (found["position"], found["translation"], found["exact"]) == (10, 10, True)
    (found, _) = json.loads(command("translate", "--group", group, "--at", "77", "--json").stdout)
    assert (found["position"], found["translation"]) == (77, 77)
    assert command("translate", "--group", group).exit_code == 0
    wrong = command("translate", "--group", group, "--at", "yesterday")
    assert wrong.exit_code == 2 and "--at yesterday" in wrong.stderr
    nobody = command("translate", "--group", f"{group}-x")
    assert nobody.exit_code == 2 and "has no offsets" in nobody.stderr
    assert command("groups", "apply", "--group", f"{group}-x").exit_code == 2

    positions_in_files(command, tmp_path, topic)
    dry = command("groups", "apply", "--group", group)
    assert dry.exit_code == 0 and "Carry it out: `airmirror groups apply" in dry.stdout
    assert committed(west, group) == {(remote, 0): 10}
    done = json.loads(command("groups", "apply", "--group", group, "--yes", "--json").stdout)
    assert committed(west, group) == {(remote, 0): 40, (remote, 1): 0}
    tool = f"kafka-consumer-groups.sh --bootstrap-server {west.bootstrap}"
    assert done["undo"] == [
        f"{tool} --reset-offsets --group {group} --topic {remote}:0 --to-offset 10 --execute",
        f"{tool} --delete-offsets --group {group} --topic {remote}:1",
    ]
    again = command("groups", "apply", "--group", group, "--yes")
    assert again.exit_code == 0 and "To undo" not in again.stdout
    for name, applied in ((group, True), (f"{group}-2", False)):  # the first has its place in another partition
        commit(east, name, {(topic, 0): 999})
        left = command("groups", "apply", "--group", name, "--yes", "--json")
        assert (left.exit_code, json.loads(left.stdout)["applied"]) == (1, applied), left.output


def positions_in_files(command: Deployment, directory: Path, topic: str) -> None:
    """``translate --from FILE --to FILE``."""
    file, to = directory / "positions.csv", directory / "positions.west.csv"
    file.write_text(f"{topic},0,4\n")
    said = command("translate", "--from", str(file), "--to", str(to), "--json")
    assert said.exit_code == 0, said.output
    (row,) = json.loads(said.stdout)["positions"]
    remote = f"{command.alias}.{topic}"
    assert (row["translation"], row["exact"], row["remote_topic"]) == (4, True, remote)
    assert to.read_text() == f"{remote},0,4\n"
    again = command("translate", "--from", str(file), "--to", str(to))
    assert again.exit_code == 2 and "there already" in again.stderr
    shown = command("translate", "--from", str(file), "--to", str(directory / "another"))
    assert shown.exit_code == 0 and "exact" in shown.stdout
    file.write_text(f"{topic},0,999\n")
    beyond = command("translate", "--from", str(file), "--to", str(directory / "third"))
    assert beyond.exit_code == 1 and f"{topic}-0 at 999" in beyond.stderr and not (directory / "third").exists()
    for wrong in (["--from", str(file)], ["--to", str(to)], [], ["--group", "g", "--from", str(file), "--to", str(to)]):
        assert command("translate", *wrong).exit_code == 2


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("groups --config staging.properties apply --group g --yes", "--config after 'apply'"),
        ("groups --flow a->b --json apply --group g", "--flow, --json after 'apply'"),
        ("report --key k.pem check r.json", "--key after 'check'"),
        ("report --ledger sqlite:///l.db fetch .", "--ledger after 'fetch'"),
    ],
)
def test_options_before_a_subcommand_are_not_thrown_away(
    line: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The subcommand would take its own defaults: another configuration's clusters."""
    monkeypatch.setenv("COLUMNS", "200")
    refused = CliRunner().invoke(app, line.split())
    assert refused.exit_code == 2 and f"write {option}" in refused.stderr, refused.output


@pytest.mark.long
def test_the_commands_that_undo_do(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic, group = create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", 2), f"billing {uuid.uuid4().hex[:8]}"
    produce(east, topic, [Record(b"v%d" % n) for n in range(100)], partition=0)
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic)
    assert command("run-window").exit_code == 0
    before = {(f"{command.alias}.{topic}", 0): 10}
    commit(east, group, {(topic, 0): 40, (topic, 1): 0})
    commit(west, group, before)
    undo = json.loads(command("groups", "apply", "--group", group, "--yes", "--json").stdout)["undo"]
    assert len(undo) == 2 and committed(west, group) != before
    for line in undo:
        _, *arguments = shlex.split(line)
        tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
        java = [str(find_java()), "-XX:TieredStopAtLevel=1", "-cp", classpath(), tool, *arguments]
        done = subprocess.run(java, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0 and "Error" not in done.stdout, done.stdout + done.stderr
    assert committed(west, group) == before

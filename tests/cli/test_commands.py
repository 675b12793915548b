"""The commands, as a person or a program types them: output, exit status, and what bad input is told."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from airmirror.cli.main import app
from airmirror.clusters.admin.appender import Appender
from airmirror.flows.prepare import catch_up_ledger, open_flow
from airmirror.naming import mapping_topic
from airmirror.on_spark import windows as spark_windows
from airmirror.runbooks.migration import inventory
from airmirror.slot.contract import Slot, SlotResult
from airmirror.wire.mappings import GATE, Hold
from airmirror_local.brokers import Broker
from airmirror_local.ports import free_port
from support.deployment import Deployment
from support.flows import at_once, in_this_process
from support.following import await_readable, beside, ended_by_event, numbered
from support.groups import commit, committed
from support.topics import Record, assert_mirrored, create_topic, produce, read_all


@pytest.fixture(autouse=True)
def slots_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows without Spark, which tests/on_spark covers."""
    monkeypatch.setattr(spark_windows, "on_spark", lambda *_: nullcontext((lambda _: 2, in_this_process)))


def test_a_window_that_follows(east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as it is told to; it says how late it was, and that is all judged."""
    time_is_up = ended_by_event(monkeypatch)
    topic = create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", 2)
    produce(east, topic, numbered(50))
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic, **{"verify.interval.ms": "200"})
    remote = f"{command.alias}.{topic}"

    def work() -> None:
        await_readable(west, remote, 50)
        produce(east, topic, numbered(50, 50))
        await_readable(west, remote, 100)

    def execute(slots: Sequence[Slot]) -> list[SlotResult]:
        assert {slot.follow_ms for slot in slots} == {300_000}
        with beside(work, time_is_up):
            return at_once(slots)

    monkeypatch.setattr(spark_windows, "on_spark", lambda *_: nullcontext((lambda _: 2, execute)))
    done = command("run-window", "--follow", "5 min", "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["records"] == 100 and result["verified"] and result["followed"]["records"] == 50
    assert assert_mirrored(east, topic, west, remote) == 100
    monkeypatch.setattr(spark_windows, "on_spark", lambda *_: nullcontext((lambda _: 2, at_once)))
    said = command("run-window", "--follow", "5 min")  # nothing comes: its time is up at once
    assert said.exit_code == 0 and "Followed" not in said.stdout
    for nonsense in ("60", "soon", "0 s"):
        refused = command("run-window", "--follow", nonsense)
        assert refused.exit_code == 2 and "--follow" in refused.output


def test_the_plan_of_a_failover(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic = create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", 1)
    produce(east, topic, numbered(50))
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic)
    back = f"west->{command.alias}.enabled"
    command.file.write_text(f"{command.file.read_text()}\n{back} = false\n")  # in the file, and yet no reverse flow
    early = command("failover", "plan")
    assert early.exit_code == 1 and "nothing to fail over to" in early.stdout and "airmirror run-window" in early.stdout
    assert command("run-window").exit_code == 0
    file = tmp_path / "plan"
    said = command("failover", "plan", "--write", str(file))
    assert said.exit_code == 0 and f"{command.alias}.{topic}" in said.stdout
    warns = [line for line in said.stdout.splitlines() if line.startswith(("warn", "stop"))]
    assert len(warns) == 1 and "reverse flow" in warns[0] and "Recovery point: 0 s; 0 offsets" in said.stdout
    assert "<script" not in (tmp_path / "plan.html").read_text()
    numbers = json.loads((tmp_path / "plan.json").read_text())["numbers"]
    assert {"name": "offsets known not to be verified", "value": 0} in numbers
    assert command("failover", "plan", "--write", str(tmp_path / "no" / "plan")).exit_code == 2
    command.file.write_text(
        command.file.read_text().replace(east.bootstrap, f"127.0.0.1:{free_port()}", 1) + f"{back} = true\n"
    )
    gone = command("failover", "plan", "--json")
    found = json.loads(gone.stdout)
    assert gone.exit_code == 0 and "can't be reached" in found["not_known"][0] and "ACLs" in found["not_known"][1]
    assert [(each["verified"], each["source_end"]) for each in found["sections"]["partitions"]] == [(50, 50)]


def migration_plan(command: Deployment, directory: Path) -> None:
    """``migration plan`` of a flow that has replicated everything."""
    file = directory / "migration"
    said = command("migration", "plan", "--write", str(file))
    assert said.exit_code == 0 and "warn there is a reverse flow" in said.stdout and "proposed" in said.stdout, (
        said.output
    )
    assert "<script" not in (directory / "migration.html").read_text()
    assert json.loads((directory / "migration.json").read_text())["asked"]["flow"] == command.flow
    alone = command("migration", "plan", "--write", str(directory / "alone.json"), "--takes", "0.5", "--json")
    told, kept = json.loads(alone.stdout)["sections"], json.loads((directory / "alone.json").read_text())["sections"]
    assert told["names"] == kept["names"] and kept["names"] and (directory / "alone.html").exists()
    assert command("migration", "plan", "--write", str(directory / "no" / "plan")).exit_code == 2


def test_plan_run_verify_status_and_rebuild(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inventory, "MEASURED_SECONDS", 0.1)
    topic = create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", 2)
    produce(east, topic, [Record(b"v%d" % n, b"k%d" % n) for n in range(100)])
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic)
    planned = json.loads(command("plan", "--json").stdout)
    assert planned["create"] == {f"{command.alias}.{topic}": 2}
    assert sum(item["end"] - item["start"] for item in planned["partitions"]) == 100
    done = command("run-window", "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["records"] == 100 and result["verified"]
    assert all(row["verified"] and row["lag"] == 0 for row in result["rows"])
    assert "0 records" in command("run-window").stdout
    compared = json.loads(command("verify", "--json").stdout)
    assert sum(row["records"] for row in compared) == 100 and not any(row["error"] for row in compared)
    migration_plan(command, tmp_path)
    status = json.loads(command("status", "--json", flow=False).stdout)
    assert status[0]["lag"] == 0 and status[0]["unverified"] == 0 and status[0]["windows"][0]["copied"] == 100
    rebuilt = command("ledger", "rebuild")
    assert rebuilt.exit_code == 0 and "2 mappings" in rebuilt.stdout
    for name in ("plan", "run-window", "verify"):
        assert command(name).exit_code == 0


def test_verify_judges_again_whatever_differs_elsewhere(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic = create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", 2)
    for partition in (0, 1):
        produce(east, topic, [Record(b"v%d" % n) for n in range(20)], partition=partition)
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic)
    assert command("run-window").exit_code == 0
    with open_flow(command.file, command.flow, command.ledger) as opened:
        first, second = (opened.ledger.last_mappings()[topic, partition] for partition in (0, 1))
        wrong = replace(first, ranges=(replace(first.ranges[0], count=19),), copied=19, aborted=1)
        passed = opened.ledger.verified()[topic, 1]
        hold = Hold(topic=topic, partition=1, offset=0, reason="somebody stood still", window="w", by=GATE, time_ms=0)
        with Appender(opened.flow.target, mapping_topic(command.alias)) as appender:
            changes = [
                (passed.encode_key(), None),
                *((each.encode_key(), each.encode_value()) for each in (wrong, hold)),
            ]
            appender.append(changes)
        compared = command("verify", "--json")
        assert compared.exit_code == 1
        errors = {row["partition"]: row["error"] for row in json.loads(compared.stdout)}
        assert "19" in errors[0] and errors[1] is None
        catch_up_ledger(opened)
        assert not opened.ledger.holds() and opened.ledger.verified()[topic, 1].offset == second.source_end - 1


def test_a_window_by_hand_does_what_a_run_does(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic, group = create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", 1), f"billing-{uuid.uuid4().hex[:8]}"
    produce(east, topic, [Record(b"v%d" % n) for n in range(100)], partition=0)
    settings = {"sync.group.offsets.enabled": "true", "groups": group, "offset-syncs.topic.location": "target"}
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic, **settings)
    remote = f"{command.alias}.{topic}"
    commit(east, group, {(topic, 0): 40})
    bare = command("run-window", "--no-offset-syncs", "--no-checkpoints", "--no-group-offsets", "--json")
    assert bare.exit_code == 0 and json.loads(bare.stdout)["tasks"] == {}
    commit(west, group, {(remote, 0): 10})
    done = command("run-window", "--json")
    assert done.exit_code == 0, done.output
    tasks = json.loads(done.stdout)["tasks"]
    assert list(tasks) == ["emit_offset_syncs", "emit_checkpoints", "sync_group_offsets"]
    assert tasks["emit_checkpoints"] == "1 checkpoint written"
    syncs = read_all(west, f"mm2-offset-syncs.{command.alias}.internal")[0]
    assert syncs and tasks["emit_offset_syncs"] == f"{len(syncs)} offset syncs written"
    assert committed(west, group) == {(remote, 0): 40}
    again = command("run-window")
    assert "sync_group_offsets: not yet: sync.group.offsets.interval.seconds" in again.stdout


def test_a_task_that_fails_stops_no_other_and_is_told(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic = create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", 1)
    produce(east, topic, [Record(b"v")], partition=0)
    more = {"offset-syncs.topic.replication.factor": "3", "offset-syncs.topic.location": "target", "groups": "none"}
    failed = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic, **more)("run-window")
    assert failed.exit_code == 1 and "emit_checkpoints: 0 checkpoints written" in failed.stdout
    assert "emit_offset_syncs" in failed.stderr and "mm2-offset-syncs" in failed.stderr


def test_a_broker_that_is_down(west: Broker, tmp_path: Path) -> None:
    command = Deployment(tmp_path, f"127.0.0.1:{free_port()}", west.bootstrap, ".*")
    failed = command("run-window")
    assert failed.exit_code == 75
    assert "can't be reached" in failed.stderr and command.alias in failed.stderr


def test_no_topic_matches(east: Broker, west: Broker, tmp_path: Path) -> None:
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, "nothing-like-this")
    for name in ("run-window", "plan"):  # it waits, as the reverse flow of a mirror must, and says so
        idle = command(name)
        assert idle.exit_code == 0 and "nothing-like-this" in idle.stdout, idle.output


def test_a_target_that_refuses_topic_creation(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic = create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", 1)
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic, **{"replication.factor": "3"})
    failed = command("run-window", "--json")
    assert failed.exit_code == 1
    assert "can't be created" in failed.stdout and json.loads(failed.stdout)["refused"]


def test_a_held_partition_waits_for_its_release(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic = create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", 2)
    produce(east, topic, [Record(b"v%d" % n, b"k%d" % n) for n in range(100)])
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic)
    # Before the flow's first window, and what makes no sense is refused.
    nobody = command("hold", "add", topic, "--partition", "0", "--reason", " ")
    assert nobody.exit_code == 2 and "needs a reason" in nobody.stderr
    assert command("hold", "add", topic, "--reason", "x", "--by", "gate").exit_code == 2
    assert "partitions 0 to 1, not 2" in command("hold", "add", topic, "--partition", "2", "--reason", "x").stderr
    assert "no-such-topic" in command("hold", "add", "no-such-topic", "--reason", "x").stderr
    assert "held are: none" in command("hold", "release", topic, "--reason", "x").stderr
    hold = ("hold", "add", topic, "--partition", "0", "--reason", "schema change", "--by", "ann")
    dry = command(*hold)
    assert dry.exit_code == 0 and "Nothing was written: --yes does it." in dry.stdout
    assert json.loads(command("hold", "list", "--json").stdout) == []
    added = json.loads(command(*hold, "--yes", "--json").stdout)
    assert added["done"] and added["decisions"][0]["reason"] == "schema change"
    first = command("run-window", "--json")
    assert first.exit_code == 0, first.output  # as ann wants it
    rows = {row["partition"]: row for row in json.loads(first.stdout)["rows"]}
    assert rows[0]["copied"] == 0 and "held" in rows[0]["error"] and "by ann" in rows[0]["error"]
    assert rows[1]["copied"] + rows[0]["lag"] == 100
    assert f"{topic}-0" in json.loads(command("status", "--json", flow=False).stdout)[0]["held"]
    # The gate, which passes, does not lift what somebody has decided; a rebuilt ledger knows it too.
    assert command("ledger", "rebuild").exit_code == 0 and command("verify").exit_code == 0
    (hold,) = json.loads(command("hold", "list", "--json").stdout)
    assert (hold["by"], hold["reason"], hold["partition"]) == ("ann", "schema change", 0)
    wrong = command("hold", "release", topic, "--partition", "1", "--reason", "x")
    assert wrong.exit_code == 2 and f"held are: {topic}-0" in wrong.stderr
    assert command("hold", "release", topic, "--reason", "consumers are ready", "--by", "bob", "--yes").exit_code == 0
    assert json.loads(command("hold", "list", "--json").stdout) == []
    history = json.loads(command("hold", "list", "--history", "--json").stdout)
    assert [(row["action"], row["by"]) for row in history] == [("hold", "ann"), ("release", "bob")]
    assert json.loads(command("run-window", "--json").stdout)["records"] == rows[0]["lag"]
    assert_mirrored(east, topic, west, f"{command.alias}.{topic}")


def test_status_and_plan_tell_what_needs_a_person(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic = create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", 1)
    produce(east, topic, [Record(b"v")], partition=0)
    suites = tmp_path / "suites"
    suites.mkdir()
    rule = "{type: expect_column_values_to_be_between, kwargs: {column: copied, max_value: 0}}"
    (suites / "mine.yaml").write_text(f"name: mine\nexpectations: [{rule}]")
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic)
    assert command("verify").exit_code == 0 and "nothing was replicated yet" in command("verify").stdout
    for shown in (command("plan"), command("status", flow=False)):
        assert shown.exit_code == 0, shown.output
    assert command("run-window", "--expectations", str(suites)).exit_code == 1
    for name, flow in (("status", False), ("plan", True)):
        shown = command(name, flow=flow)
        assert shown.exit_code == 1 and "by" in shown.stdout and "gate" in shown.stdout, shown.output
        assert not any(line != line.rstrip() for line in shown.stdout.splitlines())
    refused = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic, **{"topic.creation.enable": "false"})
    assert refused("plan").exit_code == 1 and "topic.creation.enable = false" in refused("plan").stdout


def test_what_fails_window_after_window_is_told_with_its_since(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic = create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", 2)
    produce(east, topic, [Record(b"v%d" % n, b"k%d" % n) for n in range(40)])
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic)
    assert command("run-window").exit_code == 0
    produce(west, f"{command.alias}.{topic}", [Record(b"somebody else's")], partition=0)
    produce(east, topic, [Record(b"v%d" % n, b"k%d" % n) for n in range(40)])
    assert [command("run-window").exit_code for _ in range(2)] == [1, 1]
    assert command("ledger", "rebuild").exit_code == 0  # no internal topic has it
    for name, flow in (("status", False), ("plan", True)):
        told = command(name, "--json", flow=flow)
        shown = json.loads(told.stdout)
        (failing,) = (shown[0] if name == "status" else shown)["failing"]
        assert told.exit_code == 1 and (failing["topic"], failing["partition"], failing["windows"]) == (topic, 0, 2)
        assert failing["committed_ms"] < failing["since_ms"] < failing["last_ms"], failing
    windows = json.loads(command("status", "--json", flow=False).stdout)[0]["windows"]
    assert [window["failed"] for window in windows] == [1, 1, 0]
    for name, flow in (("status", False), ("plan", True), ("hold", True)):
        shown = command(*([name, "list"] if name == "hold" else [name]), flow=flow)
        assert "fails in every window" in shown.stdout and "airmirror reset" in shown.stdout, shown.output
    assert command("reset", "--topic", topic, "--accept-loss", "--yes", "--reason", "they are ours").exit_code == 0
    assert command("run-window").exit_code == 0
    for name, flow in (("status", False), ("plan", True)):
        shown = command(name, flow=flow)
        assert shown.exit_code == 0 and "fails in every window" not in shown.stdout, shown.output


def test_bad_configuration_is_told_with_lines(tmp_path: Path) -> None:
    file = tmp_path / "mirror.properties"
    file.write_text("clusters = a, b\na.bootstrap.servers = x:1\nb.bootstrap.servers = y:1\na->b.window.max.mss = 5\n")
    failed = CliRunner().invoke(app, ["config", "--config", str(file)])
    assert failed.exit_code == 2
    assert "line 4" in failed.stderr and "window.max.ms" in failed.stderr
    unknown = Deployment(tmp_path, "x:1", "y:1", ".*")
    wrong = CliRunner().invoke(app, ["plan", "--config", str(unknown.file), "--flow", "x->y"])
    assert wrong.exit_code == 2 and unknown.flow in wrong.stderr


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    file, suites = tmp_path / "mirror.properties", tmp_path / "suites"
    suites.mkdir()
    (suites / "mine.yaml").write_text("name: mine\nexpectations: nonsense")
    lines = [
        "clusters = a, b",
        "a.bootstrap.servers = x:1",
        "b.bootstrap.servers = y:1",
        "a->b.enabled = true",
        "b->a.enabled = true",
        "a->b.window.max.mss = 5",
        "a->b.window.schedule = 1 minut",
        "a->b.topics = [",
        "b->a.audit.schedule = @continuous",
        "b->a.window.schedule = @continuous",
        "b->a.window.trigger.records = 5",
        "replication.policy.class = no.Such",
        "b->a.on.failure.notifier = no.such.Notifier",
        "a->b.tasks.max = many",
        "b->a.failover.rehearsal.schedule = @daily",
        "b->a.move.rehearsal.schedule = 1 day",
        "b->a.move.m.topics = x",
    ]
    file.write_text("\n".join(lines))
    command = ("config", "--config", str(file), "--expectations", str(suites))
    failed = CliRunner().invoke(app, [*command])
    assert failed.exit_code == 2
    for number in (6, 7, 8, 9, 11, 12, 13, 14, 15):
        assert f"line {number}: " in failed.stderr, (number, failed.stderr)
    assert "mine.yaml: " in failed.stderr
    shown = CliRunner().invoke(app, ["config", "a->b.window.schedule", "--explain"])
    assert shown.exit_code == 0 and "window.schedule" in shown.stdout and "window.max.ms" not in shown.stdout
    assert CliRunner().invoke(app, ["config", "--explain", "xyzzy"]).exit_code == 2


def test_what_is_wrong_with_another_flow_stops_no_command(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic = create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", 1)
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic, **{"west->west2.enabled": "true"})
    command.file.write_text(command.file.read_text().replace(", west\n", ", west, west2\n"))  # which has no servers
    assert json.loads(command("plan", "--json").stdout)["create"] == {f"{command.alias}.{topic}": 1}
    failed = command("status", flow=False)
    assert failed.exit_code == 1 and "west2.bootstrap.servers" in failed.stderr and command.flow in failed.stdout


def test_bad_input_is_told_as_that(tmp_path: Path) -> None:
    """Typos are errors of whoever types them: exit status 2, and nobody has to decide anything."""
    command = Deployment(tmp_path, "x:1", "y:1", ".*")
    config = ("--config", str(command.file))
    for arguments in (
        ("status", *config, "--ledger", "foo"),
        ("config", "--config", "nosuch.properties"),
        ("plan", *config, "--flow", "a-b"),
        ("run-window", *config, "--spark", "http://127.0.0.1:1"),
        ("verify", *config, "--expectations", str(tmp_path / "none")),
    ):
        failed = CliRunner().invoke(app, [*arguments])
        assert failed.exit_code == 2, (arguments, failed.output)
        assert "to be decided" not in failed.output
    none = tmp_path / "none.properties"
    none.write_text("clusters = a, b\na.bootstrap.servers = x:1\nb.bootstrap.servers = y:1\n")
    assert "no flow is enabled" in CliRunner().invoke(app, ["plan", "--config", str(none)]).stderr


def test_every_command_has_help() -> None:
    for command in (
        [],
        ["config"],
        ["plan"],
        ["run-window"],
        ["verify"],
        ["status"],
        ["hold", "add"],
        ["hold", "release"],
        ["hold", "list"],
        ["ledger", "rebuild"],
        ["groups"],
        ["groups", "apply"],
        ["translate"],
        ["demo"],
        ["up"],
        ["down"],
    ):
        assert CliRunner().invoke(app, [*command, "--help"]).exit_code == 0

"""``airmirror takeover``: what is printed, the exit status, and that nothing is done without ``--yes``."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from uuid import uuid4

import pytest

from airmirror.clusters.admin.appender import Appender
from airmirror.config import load
from airmirror.naming import progress_topic
from airmirror.on_spark import windows as spark_windows
from airmirror.topics.internal import ensure_internal_topics
from airmirror.topics.sync import apply, look
from airmirror.wire.mirrormaker import murmur2_partition, source_offset_key, source_offset_value
from airmirror_local.brokers import Broker
from support.deployment import Deployment
from support.flows import in_this_process
from support.mirrormaker import numbered
from support.topics import assert_mirrored, create_topic, produce, read_all


def test_a_take_over_is_planned_carried_out_and_continued(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_windows, "on_spark", lambda *_: nullcontext((lambda _: 2, in_this_process)))
    topic = create_topic(east, f"orders-{uuid4().hex[:8]}", 1)
    produce(east, topic, numbered(100))
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic)
    remote, flow = f"{command.alias}.{topic}", load(command.file).flow(command.flow)
    apply(flow, look(flow))
    ensure_internal_topics(flow)
    produce(west, remote, read_all(east, topic)[0][:70], partition=0)
    key = source_offset_key(command.alias, topic, 0)
    with Appender(flow.target, progress_topic(command.alias), murmur2_partition(key, 3)) as appender:
        appender.append([(key, source_offset_value(59))])
    said = command("takeover", "plan")
    assert said.exit_code == 0 and "Where it continues" in said.stdout, said.output
    [planned] = json.loads(command("takeover", "plan", "--json").stdout)["sections"]["partitions"]
    assert (planned["last_of_mirrormaker"], planned["continues_at"], planned["recognised"]) == (59, 70, 10)
    why, file = ("--reason", "it goes"), ("--write", str(tmp_path / "report"))
    dry = json.loads(command("takeover", "run", *why, "--json").stdout)
    assert dry["done"] is False and dry["sections"]["partitions"][0]["continues_at"] == 70
    assert "airmirror takeover run --reason '…' --yes" in command("takeover", "run", *why).stdout
    done = command("takeover", "run", *why, *file, "--yes", "--json")
    [taken] = json.loads(done.stdout)["sections"]["partitions"]
    assert done.exit_code == 0 and taken["continues_at"] == 70 and (tmp_path / "report.html").exists(), done.output
    window = command("run-window", "--no-expectations", "--json")
    assert window.exit_code == 0 and json.loads(window.stdout)["records"] == 30
    assert assert_mirrored(east, topic, west, remote) == 100
    history = ("takeover", "run", "--step", "history", *why)
    [its] = json.loads(command(*history, "--json").stdout)["sections"]["partitions"]
    assert (its["exact_from"], its["would_be_from"], its["records"], its["twice"]) == (60, 0, 60, 0)
    exact = command(*history, "--yes")
    assert exact.exit_code == 0 and "positions were exact from 60 on, and are from 0 on" in exact.stdout, exact.output
    handed_back(command, west, tmp_path / "offsets.json", why, file)
    produce(east, topic, numbered(10, 100))
    check = ("handback", "plan", "--check")
    idle = command(*check, "--wait", "0")
    assert idle.exit_code == 1 and "nothing yet" in idle.stdout and "none of its workers is seen" in idle.stdout
    produce(west, remote, read_all(east, topic)[0][100:], partition=0)
    resumes = command(*check, "--json")
    [first] = json.loads(resumes.stdout)["sections"]["partitions"]
    assert resumes.exit_code == 0 and (first["found"], first["handed_back_at"], first["compared"]) == (
        "resumed",
        100,
        10,
    )
    produce(west, remote, [numbered(1)[0]], partition=0)  # it was started by mistake
    produce(west, remote, [numbered(1, 5000)[0]], partition=0)  # and somebody else
    twice = command(*check)
    assert twice.exit_code == 1 and "again source offsets 0 to 0" in twice.stdout and "not the source's" in twice.stdout
    wrong = command("takeover", "plan")
    assert wrong.exit_code == 1 and "are not what the source holds at MirrorMaker 2's place" in wrong.stdout
    refused = command("takeover", "run", *why, *file, "--yes")
    assert refused.exit_code == 1 and "airmirror reset" in refused.stdout


def handed_back(command: Deployment, west: Broker, offsets: Path, why: tuple[str, ...], file: tuple[str, ...]) -> None:
    """To a dedicated MirrorMaker 2, which needs nothing; by a file for Connect's REST API; and in a topic of its workers."""
    plan = command("handback", "plan", "--offsets", str(offsets))
    assert plan.exit_code == 0 and "airmirror handback plan --check" in plan.stdout, plan.output
    assert "a dedicated MirrorMaker 2 finds its progress: in mm2-offsets." in plan.stdout
    [body] = json.loads(offsets.read_text())["offsets"]
    assert body["partition"]["cluster"] == command.alias and body["offset"] == {"offset": 99}
    nowhere = command("handback", "plan", "--offsets", str(offsets / "no" / "such"))
    assert nowhere.exit_code == 2 and "was not written: Not a directory" in nowhere.output
    dedicated = command("handback", "run", *why, "--yes")
    assert dedicated.exit_code == 0 and "for one on Connect name the topic of its workers (--topic)" in dedicated.stdout
    workers = create_topic(west, f"connect-offsets-{uuid4().hex[:8]}", 5)
    write = ("handback", "run", *why, "--topic", workers, "--connector", "our mirror")
    dry = command(*write)
    assert dry.exit_code == 0 and "With --yes it takes the steps write" in dry.stdout, dry.output
    assert not any(read_all(west, workers).values())
    done = command(*write, *file, "--yes")
    assert done.exit_code == 0 and f"1 partition is written into {workers}" in done.stdout, done.output
    [record] = [each for its in read_all(west, workers).values() for each in its]
    assert record.key == source_offset_key(command.alias, body["partition"]["topic"], 0, "our mirror")
    missing = command("handback", "run", *why, "--topic", "no-such-topic", "--yes")
    assert missing.exit_code == 1 and "offset.storage.topic" in missing.output

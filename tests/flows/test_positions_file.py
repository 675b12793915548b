"""Files of positions on real clusters: the record at each translated position is the one at the source's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from airmirror.flows.positions_file import FileTranslation, PositionsNotTranslated, translate_file
from airmirror_local import jars
from airmirror_local.brokers import Broker
from support import ROOT
from support.flows import Mirror, mirror
from support.topics import Record, await_settled, produce, read_all


def filled(east: Broker, west: Broker, directory: Path) -> Mirror:
    """Two partitions in two windows, with transactions: offsets differ, and neither side's are without gaps."""
    flow = mirror(east, west, directory, partitions=2)
    for window in range(2):
        for partition in (0, 1):
            made = [Record(b"%d-%d-%d" % (partition, window, n)) for n in range(10)]
            produce(east, flow.topic, made[:4], partition=partition)
            produce(east, flow.topic, [Record(b"never")], partition=partition, transactional="abort")
            produce(east, flow.topic, made[4:], partition=partition, transactional="commit")
        await_settled(east, flow.topic)
        flow.run()
    return flow


def assert_same_records(flow: Mirror, found: FileTranslation) -> None:
    """The next record to read is the same on both sides, for every position; at the end there is none on either."""
    here, there = read_all(flow.source, flow.topic), read_all(flow.target, flow.remote_topic)
    assert found.answers
    for position, answer in found.answers.items():
        assert answer.topic == flow.remote_topic and answer.exact
        rest = [record.value for record in here[position.partition] if record.offset >= position.offset]
        rest_there = [record.value for record in there[position.partition] if record.offset >= answer.offset]
        assert rest_there == rest, (position, answer)


def positions(flow: Mirror) -> list[tuple[int, int]]:
    """At records, at an aborted one, at markers, at the end."""
    ends = {number: records[-1].offset + 2 for number, records in read_all(flow.source, flow.topic).items()}
    return [(0, 0), (0, 17), (1, 4), (1, 6), (0, ends[0]), (1, ends[1])]


def test_every_format(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = filled(east, west, tmp_path)
    alias, topic = flow.flow.source.alias, flow.topic
    pairs = [positions(flow)[:2][1], positions(flow)[3]]  # one a partition
    texts = {
        "plain": json.dumps([{"topic": topic, "partition": p, "offset": o} for p, o in pairs]),
        "by_partition": json.dumps({topic: {str(p): o for p, o in pairs}}),
        "csv": "".join(f"{topic},{p},{o}\n" for p, o in pairs),
        "groups": "".join(f"g{n},{topic},{p},{o}\n" for n, (p, o) in enumerate(positions(flow))),
        "flink": ";".join(f"partition:{p},offset:{o}" for p, o in pairs),
        "table": json.dumps(
            {"topic": topic, "scan.startup.specific-offsets": ";".join(f"partition:{p},offset:{o}" for p, o in pairs)}
        ),
        "sink": json.dumps(
            {"offsets": [{"partition": {"kafka_topic": topic, "kafka_partition": p}, "offset": {"kafka_offset": o}}
                         for p, o in pairs]}
        ),
        "source": json.dumps(
            {"offsets": [{"partition": {"cluster": alias, "topic": topic, "partition": p}, "offset": {"offset": o - 1}}
                         for p, o in pairs]}
        ),
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        found = translate_file(flow.opened, tmp_path / name, tmp_path / f"{name}.to", topic if name == "flink" else "")
        assert_same_records(flow, found)
        again = (tmp_path / f"{name}.to").read_text()
        for answer in found.answers.values():  # what was answered is what was written
            assert str(answer.offset - (name == "source")) in again and (name == "flink" or flow.remote_topic in again)

    a_checkpoint(flow, tmp_path)


def a_checkpoint(flow: Mirror, tmp_path: Path) -> None:
    here = tmp_path / "checkpoint"
    for name in ("offsets", "commits", "sources/0"):
        (here / name).mkdir(parents=True)
    (here / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    (here / "sources/0/0").write_text("\0v1\n{}")
    for batch, (first, second) in {7: (5, 12), 8: (20, 17)}.items():
        line = json.dumps({flow.topic: {"0": first, "1": second}}, separators=(",", ":"))
        (here / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{line}")
    found = translate_file(flow.opened, here, tmp_path / "copy")
    assert_same_records(flow, found)
    line = (tmp_path / "copy/offsets/8").read_text().splitlines()[2]
    of_8 = {str(each.partition): there.offset for each, there in found.answers.items() if "batch 8" in each.place}
    assert json.loads(line) == {flow.remote_topic: of_8}


def test_what_is_not_known_is_named_and_nothing_is_written(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, [Record(b"v%d" % n) for n in range(10)])
    flow.run()
    produce(east, flow.topic, [Record(b"not yet")])
    file, to = tmp_path / "positions", tmp_path / "to"
    for wrong, reason in ({
        f"{flow.topic},0,11": "not yet verified",
        f"{flow.topic},0,12": "beyond the log end",
        f"{flow.topic},7,1": "does not exist",
        f"{topic('other')},0,1": "not replicated",
    }).items():  # fmt: skip
        name, partition, offset = wrong.split(",")
        file.write_text(f"g,{flow.topic},0,3\nh,{wrong}\n")
        with pytest.raises(PositionsNotTranslated, match=reason) as failed:
            translate_file(flow.opened, file, to)
        assert f"{name}-{partition} at {offset} (group h)" in str(failed.value)
        assert len(failed.value.reasons) == 1 and not to.exists()


def query(cluster: Broker, topic: str, checkpoint: Path, out: Path) -> list[str]:
    """Run a Spark query to the end of the topic; the values that it has written so far, and before."""
    from pyspark import __version__

    found = jars.resolve(version=__version__, modules=ROOT / "tests/support/spark-kafka.ivy.xml")
    command = [sys.executable, "-m", "support.spark_query", cluster.bootstrap, topic, checkpoint, out, found]
    # A session of Spark Connect that another test has had leaves marks there.
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    environment = ours | {"PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=500, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line)["value"] for file in out.glob("*.json") for line in file.read_text().splitlines()]


@pytest.mark.long
def test_a_spark_query_resumes_on_the_other_cluster(east: Broker, west: Broker, tmp_path: Path) -> None:
    """With its checkpoint translated after it was stopped it reads every record once, in its next batches."""
    flow, out = filled(east, west, tmp_path), tmp_path / "out"
    first = query(east, flow.topic, tmp_path / "checkpoint", out)
    here = [str(record.value, "ascii") for each in read_all(east, flow.topic).values() for record in each]
    assert sorted(first) == sorted(here)
    for partition in (0, 1):
        produce(east, flow.topic, [Record(b"later-%d-%d" % (partition, n)) for n in range(10)], partition=partition)
    flow.run()
    copy = tmp_path / "checkpoint.west"
    batches = [int(each.name) for each in (tmp_path / "checkpoint/offsets").iterdir() if each.name.isdecimal()]
    assert_same_records(flow, translate_file(flow.opened, tmp_path / "checkpoint", copy))
    both = query(west, flow.remote_topic, copy, out)
    later = [f"later-{partition}-{n}" for partition in (0, 1) for n in range(10)]
    assert sorted(both) == sorted([*here, *later])
    assert max(int(each.name) for each in (copy / "offsets").iterdir() if each.name.isdecimal()) > max(batches) > 1

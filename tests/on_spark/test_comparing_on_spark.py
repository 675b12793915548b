"""A comparison on real Spark finds what one process finds, over planted faults; what comes back is data that is checked."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pyspark.errors import PySparkException
from typer.testing import CliRunner

from airmirror.cli.main import app
from airmirror.clusters.protocol.routes import Routes, TopicNotFound
from airmirror.config import Cluster
from airmirror.evidence import mirrors
from airmirror.evidence.asking import ComparisonRequest
from airmirror.evidence.borders import SampleSize
from airmirror.evidence.found import Difference, Findings, Kind
from airmirror.evidence.mirrors import compare_clusters
from airmirror.evidence.parts import Execute, Part, View, in_this_process
from airmirror.on_spark import comparing
from airmirror.on_spark.compare_results import decode, encode
from airmirror.on_spark.comparing import on_spark
from airmirror.on_spark.results import BadAnswer, encode_error
from airmirror_local.brokers import Broker
from airmirror_local.spark_connect import ConnectServer
from support.hostile import KINDS, LONGEST, NOON, numbered
from support.topics import Record, create_topic, produce, read_all

KINDS_IN_TASKS = ("interleaved transactions",)


def faulty(records: Sequence[Record]) -> list[Record]:
    """Lost at 700, 1,000 to 1,199 twice, 400 far too late, 1,800 altered, a stranger before 2,000."""
    made = [*records[:400], *records[401:700], *records[701:1200], *records[1000:1800]]
    made += [replace(records[1800], value=b"altered"), *records[1801:2000], Record(b"stranger", b"k", timestamp=NOON)]
    return [*made, *records[2000:2600], records[400], *records[2600:]]


def copied(west: Broker, name: str, records: dict[int, list[Record]]) -> None:
    config = {"message.timestamp.before.max.ms": LONGEST, "message.timestamp.after.max.ms": LONGEST}
    create_topic(west, f"copy.{name}", len(records), config)
    for partition, its in records.items():
        produce(west, f"copy.{name}", its, partition=partition)


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
def test_a_comparison_that_is_ended_ends_its_job(monkeypatch: pytest.MonkeyPatch, ending: type[BaseException]) -> None:
    """Where Spark is gone too, what ended it is told all the same."""
    asked: list[str] = []

    def gone(tag: str) -> None:
        asked.append(tag)
        raise PySparkException("UNAVAILABLE")

    def ended(*_: object) -> None:
        raise ending

    session: Any = SimpleNamespace(addTag=asked.append, interruptTag=gone, removeTag=asked.append)
    ends = comparing.ComparedClusters(Cluster("source", ("a:1",), {}), Cluster("target", ("b:1",), {}))
    monkeypatch.setattr(comparing, "run_tasks", ended)
    with pytest.raises(ending):
        comparing.compare_parts(session, ends, ComparisonRequest(("t",)).view, [Part((), ())])
    assert len(asked) == 3 and len(set(asked)) == 1


@pytest.mark.parametrize("sampled", [False, pytest.param(True, marks=pytest.mark.long)])
def test_tasks_find_what_one_process_finds(
    east: Broker, west: Broker, connect_server: ConnectServer, monkeypatch: pytest.MonkeyPatch, sampled: bool
) -> None:
    records = [replace(record, timestamp=NOON + number) for number, record in enumerate(numbered(3000))]
    prefix = f"tasks-{uuid.uuid4().hex[:8]}"
    faults, keys = create_topic(east, f"{prefix}-faults", 2), create_topic(east, f"{prefix}-keys", 1)
    for topic, partition in ((faults, 0), (faults, 1), (keys, 0)):
        produce(east, topic, records, partition=partition)
    copied(west, faults, {0: faulty(records), 1: records})
    copied(west, keys, {0: records[::2], 1: records[1::2]})
    for kind in (each for each in KINDS if str(each) in KINDS_IN_TASKS):
        name = create_topic(east, f"{prefix}-hostile", kind.partitions, kind.config)
        kind.fill(east, name)
        copied(west, name, read_all(east, name))
    ends = Cluster("source", (east.bootstrap,), {}), Cluster("target", (west.bootstrap,), {})
    asked = ComparisonRequest((f"{prefix}-.*",), rename="copy.{topic}")
    if sampled:
        asked = replace(asked, topics=(faults,), sample=SampleSize(share=30_000, seed=2))
    monkeypatch.setattr(mirrors, "PART_OFFSETS", 1500)
    rounds: list[int] = []
    with on_spark(*ends, asked.view, connect_server.url) as execute:

        def counting(parts: Sequence[Part]) -> list[Findings]:
            rounds.append(len(parts))
            return execute(parts)

        in_tasks = compare_clusters(*ends, asked, execute=counting)
    here = compare_clusters(*ends, asked)
    assert [row.as_dict() for row in in_tasks] == [row.as_dict() for row in here]
    if sampled:
        return
    assert [row.findings and row.findings.ranges for row in in_tasks] == [
        row.findings and row.findings.ranges for row in here
    ]
    assert rounds[0] >= 6 and rounds[1] == 1, "cut, and what lies in two parts compared again as one"
    first = in_tasks[[row.topic for row in in_tasks].index(faults)]
    wanted = {"equal": 2997, "missing": 1, "twice": 200, "reordered": 1, "altered": 1, "extra": 1}
    assert {str(kind): count for kind, count in first.counts.items()} == wanted


def test_the_command_compares_where_it_is_told_to(
    east: Broker, west: Broker, topic: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session's tasks find what one process finds, above: here one process takes their place."""
    records = [replace(record, timestamp=NOON + number) for number, record in enumerate(numbered(50))]
    name = create_topic(east, topic("orders"))
    produce(east, name, records)
    copied(west, name, {0: records[:40] + records[30:]})
    ends = [word for side, broker in (("source", east), ("target", west)) for word in (f"--{side}", broker.bootstrap)]
    words = ["compare", *ends, "--topics", name, "--rename", "copy.{topic}", "--json"]
    asked: list[tuple[str, str, str | None]] = []

    @contextmanager
    def session(source: Cluster, target: Cluster, view: View, url: str | None) -> Iterator[Execute]:
        asked.append((*source.bootstrap_servers, *target.bootstrap_servers, url))  # type: ignore[arg-type]
        with Routes(source, "test") as here, Routes(target, "test") as there:
            here.refresh([name])
            there.refresh([f"copy.{name}"])
            yield in_this_process(here, there, view)

    monkeypatch.setattr(comparing, "on_spark", session)
    answers = [CliRunner().invoke(app, [*words, *more]) for more in ([], ["--spark", "sc://host:15002"])]
    assert [answer.exit_code for answer in answers] == [1, 1], answers[1].output
    one, other = (json.loads(answer.output) for answer in answers)
    assert one == other and one["partitions"][0]["records"]["twice"] == 10
    assert asked == [(east.bootstrap, west.bootstrap, "sc://host:15002")]
    refused = CliRunner().invoke(app, [*words, "--spark", "spark://host:7077"])
    assert refused.exit_code == 2 and "sc://" in refused.output


def test_an_answer_is_read_as_it_was_written() -> None:
    found = Findings(keeps_offsets=False)
    found.missing.add(np.array([2**64 - 1] * 2, np.uint64), np.array([5, 6]))
    found.extra.add(np.array([7], np.uint64), np.array([8]))
    found.extra.give_up(np.array([1, 2, 4]), ())
    found.equal(np.array([10, 11, 20]), np.array([5, 6, 7]))
    found.differences.append(Difference(Kind.ALTERED, 1, 2, 3, ("key", "value")))
    assert decode(encode(found)) == found
    with pytest.raises(TopicNotFound) as failed:
        decode(encode_error(TopicNotFound("west", "orders")))
    assert failed.value.topic == "orders"


@pytest.mark.parametrize("at", ["counts", "differences", "ranges", "missing", "last_pair", "keeps_offsets"])
def test_an_answer_that_makes_no_sense_is_refused(at: str) -> None:
    answer = json.loads(encode(Findings()))
    for wrong in ("x", {"x": "y"}, [["x", 1, 2, 3, 4]], [1.5], None):
        with pytest.raises(BadAnswer):
            decode(json.dumps({"found": answer["found"] | {at: wrong}}).encode())
    del answer["found"][at]
    with pytest.raises(BadAnswer):
        decode(json.dumps(answer).encode())

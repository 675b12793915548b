"""A copy that the real MirrorMaker 2 made: killed in mid-copy and started again, it copies records twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from airmirror.config import Cluster
from airmirror.evidence.asking import Asked
from airmirror.evidence.found import Kind
from airmirror.evidence.mirrors import compare_clusters
from airmirror_local.brokers import LOGGING, Broker
from airmirror_local.jars import classpath
from airmirror_local.java import find_java
from airmirror_local.processes import Process, start_process
from support.topics import Record, admin, create_topic, end_offsets, produce, read_all

RECORDS = 60_000
SECONDS = 120
CONFIGURATION = """
clusters = {alias}, west
{alias}.bootstrap.servers = {source}
west.bootstrap.servers = {target}
{alias}->west.enabled = true
{alias}->west.topics = {topic}
{alias}->west.emit.heartbeats.enabled = false
tasks.max = 1
replication.factor = 1
checkpoints.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
config.storage.replication.factor = 1
offset.flush.interval.ms = 1000
{alias}.consumer.max.poll.records = 200
"""

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]


@contextmanager
def mirror_maker(file: Path, log: Path) -> Iterator[Process]:
    """MirrorMaker 2 in dedicated mode; killed at the end, as a machine that dies kills it."""
    command = [
        str(find_java()),
        "-Xmx512m",
        *LOGGING,
        "-cp",
        classpath(),
        "org.apache.kafka.connect.mirror.MirrorMaker",
        str(file),
    ]
    process = start_process("MirrorMaker 2", command, log)
    try:
        yield process
    finally:
        process.kill()


def copied(west: Broker, remote: str) -> int:
    """How many offsets the remote topic has; 0 before it is there."""
    if remote not in admin(west).list_topics(timeout=10).topics:
        return 0
    return sum(end_offsets(west, remote).values())


def await_copied(west: Broker, remote: str, count: int) -> None:
    waiting = Retrying(
        retry=retry_if_exception_type(AssertionError),
        stop=stop_after_delay(SECONDS),
        wait=wait_fixed(0.05),
        reraise=True,
    )
    for attempt in waiting:
        with attempt:
            assert copied(west, remote) >= count


def test_what_a_killed_mirrormaker_copied_twice_is_found_exactly(
    east: Broker, west: Broker, topic: Callable[[str], str], tmp_path: Path
) -> None:
    name = create_topic(east, topic("mm2"), 1)
    produce(east, name, [Record(b"v%d" % number, b"k%d" % number) for number in range(RECORDS)], partition=0)
    alias = topic("mm")
    remote = f"{alias}.{name}"
    file = tmp_path / "mm2.properties"
    file.write_text(CONFIGURATION.format(alias=alias, source=east.bootstrap, target=west.bootstrap, topic=name))
    with mirror_maker(file, tmp_path / "first.log"):
        await_copied(west, remote, RECORDS // 4)
    with mirror_maker(file, tmp_path / "second.log"):
        await_copied(west, remote, RECORDS)
        for attempt in Retrying(
            retry=retry_if_exception_type(AssertionError),
            stop=stop_after_delay(SECONDS),
            wait=wait_fixed(1),
            reraise=True,
        ):
            with attempt:
                assert {record.key for record in read_all(west, remote)[0]} >= {b"k%d" % (RECORDS - 1)}
    copies = Counter(record.key for record in read_all(west, remote)[0])
    again = sum(count - 1 for count in copies.values())
    assert len(copies) == RECORDS
    ends = Cluster("source", (east.bootstrap,), {}), Cluster("target", (west.bootstrap,), {})
    (row,) = compare_clusters(*ends, Asked((name,), rename=f"{alias}.{{topic}}"))
    assert row.counts[Kind.EQUAL] == RECORDS
    assert row.counts.get(Kind.TWICE, 0) == again and set(row.counts) <= {Kind.EQUAL, Kind.TWICE}
    assert again, "MirrorMaker 2 was killed between two flushes of its offsets, and yet copied nothing twice"

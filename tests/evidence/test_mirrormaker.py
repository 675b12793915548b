"""Copies that the real MirrorMaker 2 made: killed in mid-copy, exactly-once, and of a topic that was made again meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from airmirror.config import Cluster
from airmirror.evidence.asking import ComparisonRequest
from airmirror.evidence.found import Kind
from airmirror.evidence.mirrors import compare_clusters
from airmirror.evidence.rows import ComparedLogs
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

EXACTLY_ONCE = """
west.exactly.once.source.support = enabled
dedicated.mode.enable.internal.rest = true
listeners = http://127.0.0.1:0
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


def patiently(pause: float) -> Retrying:
    return Retrying(
        retry=retry_if_exception_type(AssertionError),
        stop=stop_after_delay(SECONDS),
        wait=wait_fixed(pause),
        reraise=True,
    )


def await_copied(west: Broker, remote: str, count: int) -> None:
    for attempt in patiently(0.05):
        with attempt:
            assert copied(west, remote) >= count


@dataclass(frozen=True)
class Mirrored:
    """A topic of the source with what MirrorMaker 2 needs to copy it; ``more`` are lines of its configuration."""

    east: Broker
    west: Broker
    topic: str
    alias: str
    directory: Path
    more: str = ""

    @property
    def remote(self) -> str:
        return f"{self.alias}.{self.topic}"

    @contextmanager
    def running(self, log: str) -> Iterator[None]:
        file = self.directory / "mm2.properties"
        ends = {"source": self.east.bootstrap, "target": self.west.bootstrap}
        file.write_text(CONFIGURATION.format(alias=self.alias, topic=self.topic, **ends) + self.more)
        with mirror_maker(file, self.directory / log):
            yield

    def compared(self) -> ComparedLogs:
        ends = Cluster("source", (self.east.bootstrap,), {}), Cluster("target", (self.west.bootstrap,), {})
        (row,) = compare_clusters(*ends, ComparisonRequest((self.topic,), rename=f"{self.alias}.{{topic}}"))
        return row

    def await_last(self, key: bytes) -> None:
        """Wait until the record with this key is on the target."""
        await_copied(self.west, self.remote, 1)
        for attempt in patiently(1):
            with attempt:
                assert key in {record.key for record in read_all(self.west, self.remote)[0]}


@pytest.fixture
def mirrored(east: Broker, west: Broker, topic: Callable[[str], str], tmp_path: Path) -> Mirrored:
    name = create_topic(east, topic("mm2"), 1)
    produce(east, name, numbered("k", RECORDS), partition=0)
    return Mirrored(east=east, west=west, topic=name, alias=topic("mm"), directory=tmp_path)


def numbered(key: str, count: int) -> list[Record]:
    return [Record(b"v%d" % number, f"{key}{number}".encode()) for number in range(count)]


def test_what_a_killed_mirrormaker_copied_twice_is_found_exactly(mirrored: Mirrored) -> None:
    with mirrored.running("first.log"):
        await_copied(mirrored.west, mirrored.remote, RECORDS // 4)
    with mirrored.running("second.log"):
        await_copied(mirrored.west, mirrored.remote, RECORDS)
        mirrored.await_last(b"k%d" % (RECORDS - 1))
    copies = Counter(record.key for record in read_all(mirrored.west, mirrored.remote)[0])
    again = sum(count - 1 for count in copies.values())
    assert len(copies) == RECORDS
    row = mirrored.compared()
    assert row.counts[Kind.EQUAL] == RECORDS
    assert row.counts.get(Kind.TWICE, 0) == again and set(row.counts) <= {Kind.EQUAL, Kind.TWICE}
    assert again, "MirrorMaker 2 was killed between two flushes of its offsets, and yet copied nothing twice"


def test_an_exactly_once_mirrormaker_that_was_killed_has_made_an_equal_copy(mirrored: Mirrored) -> None:
    """Its aborted transactions and its markers are no records."""
    exactly_once = replace(mirrored, more=EXACTLY_ONCE)
    with exactly_once.running("first.log"):
        await_copied(mirrored.west, mirrored.remote, RECORDS // 4)
    with exactly_once.running("second.log"):
        exactly_once.await_last(b"k%d" % (RECORDS - 1))
    row = mirrored.compared()
    assert row.is_equal and row.counts == {Kind.EQUAL: RECORDS} and not row.keeps_offsets, row.differences


def test_the_loss_that_a_topic_made_again_hides_is_found(mirrored: Mirrored) -> None:
    """MirrorMaker 2 resumes at its old offset in the new topic, and tells nobody what it has left out."""
    east, name = mirrored.east, mirrored.topic
    with mirrored.running("first.log"):
        mirrored.await_last(b"k%d" % (RECORDS - 1))
        end = end_offsets(mirrored.west, mirrored.remote)[0]
        await_flushed(mirrored)
    for future in admin(east).delete_topics([name]).values():
        future.result()
    for attempt in patiently(0.2):
        with attempt:
            assert name not in admin(east).list_topics(timeout=10).topics
    create_topic(east, name, 1)
    produce(east, name, numbered("new", RECORDS + 5_000), partition=0)
    with mirrored.running("second.log"):
        mirrored.await_last(b"new%d" % (RECORDS + 4_999))
    row = mirrored.compared()
    copied_new = row.counts[Kind.EQUAL]
    assert row.counts == {Kind.EQUAL: copied_new, Kind.MISSING: RECORDS + 5_000 - copied_new, Kind.EXTRA: end}
    lost = [(each.source_offset, each.count) for each in row.differences if each.kind is Kind.MISSING]
    assert lost == [(0, RECORDS + 5_000 - copied_new)] and 5_000 <= copied_new < RECORDS


def await_flushed(mirrored: Mirrored) -> None:
    """Wait until MirrorMaker 2 has written down how far it has read: the last of its offsets topic says so."""
    for attempt in patiently(0.5):
        with attempt:
            told = read_all(mirrored.west, f"mm2-offsets.{mirrored.alias}.internal", settled=False)
            offsets = [record.value or b"" for records in told.values() for record in records]
            assert any(b'"offset":%d}' % (RECORDS - 1) in value for value in offsets), offsets[-3:]

"""Taking over from a MirrorMaker 2 on a Connect cluster, whose workers keep its progress in a topic of theirs."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from airmirror.config import load
from airmirror.flows.handback import positions, rest_body, write_offsets
from airmirror.flows.prepare import Opened
from airmirror.ledger import Ledger
from airmirror.topics.internal import ensure_internal_topics
from airmirror.topics.sync import apply, look
from airmirror.windows.connect_offsets import OffsetsTopicMissing
from airmirror.wire.mirrormaker import source_offset_key, source_offset_value
from airmirror_local.brokers import LOGGING, Broker
from airmirror_local.jars import classpath
from airmirror_local.java import find_java
from airmirror_local.ports import LOOPBACK, free_port
from airmirror_local.processes import Process, start_process
from support.faults import unseen_before_the_starts
from support.flows import Mirror, mirror
from support.topics import Record, create_topic, end_offsets, produce, read_all

NAME = "our mirror"


def numbered(count: int, start: int = 0) -> list[Record]:
    return [Record(b"v%d" % n, b"k%d" % n, (), 1_700_000_000_000 + n) for n in range(start, start + count)]


def on_connect(east: Broker, west: Broker, directory: Path, topic: str) -> Mirror:
    settings = {"takeover.offsets.topics": topic, "takeover.connector.name": NAME}
    return mirror(east, west, directory, partitions=2, settings=settings)


def note(flow: Mirror, topic: str, partition: int, offset: int | None, *, at: int, **key: object) -> None:
    """What a worker writes into one partition of its topic, ``at`` a time: the progress of a partition of ours."""
    named = {"cluster": flow.flow.source.alias, "topic": flow.topic, "partition": partition, "connector": NAME} | key
    value = None if offset is None else source_offset_value(offset)
    record = Record(value, source_offset_key(**named), (), 1_700_000_000_000 + at)  # type: ignore[arg-type]
    produce(flow.target, topic, [record], partition=at % 3)


def test_the_progress_of_the_connector_counts_where_nothing_is_known(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    topic = create_topic(west, f"connect-offsets-{uuid4()}", 3, {"cleanup.policy": "compact"})
    flow = on_connect(east, west, tmp_path, topic)
    for partition in (0, 1):
        produce(east, flow.topic, numbered(100, 100 * partition), partition=partition)
    apply(flow.flow, look(flow.flow))
    ensure_internal_topics(flow.flow)
    produce(west, flow.remote_topic, read_all(east, flow.topic)[0][:70], partition=0)  # 20 of them after its progress
    note(flow, topic, 0, 10, at=1)
    note(flow, topic, 0, 49, at=3)  # the topic was given more partitions between the two
    note(flow, topic, 0, 99, at=4, connector="another")
    note(flow, topic, 0, 99, at=5, cluster="another")
    note(flow, topic, 1, 99, at=6)
    note(flow, topic, 1, None, at=9)  # taken back
    produce(west, topic, [Record(b"{}", b'["sink",{"kafka_topic":"x"}]'), Record(b"\xff", b"\xff")], partition=0)
    assert flow.run().is_verified
    assert flow.assert_equal() == 200
    note(flow, topic, 0, 5, at=12)  # of no account any more
    produce(east, flow.topic, numbered(10, 300))
    assert flow.run().is_verified
    assert flow.assert_equal() == 210


def test_a_partition_that_was_not_seen_at_first_continues_after_it_too(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something is known of its topic then, and nothing of it."""
    topic = create_topic(west, f"connect-offsets-{uuid4()}", 3)
    flow = on_connect(east, west, tmp_path, topic)
    apply(flow.flow, look(flow.flow))
    ensure_internal_topics(flow.flow)
    for partition in (0, 1):
        produce(east, flow.topic, numbered(100, 100 * partition), partition=partition)
        produce(west, flow.remote_topic, read_all(east, flow.topic)[partition][:70], partition=partition)
        note(flow, topic, partition, 49, at=partition)
    assert not unseen_before_the_starts(monkeypatch, flow, 1)
    assert [row.error is None for row in flow.run().rows] == [True, False]
    assert flow.run().is_verified
    assert flow.assert_equal() == 200


def test_a_topic_of_workers_that_is_not_there_is_an_error(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = on_connect(east, west, tmp_path, "no-such-topic")
    produce(east, flow.topic, numbered(10))
    with pytest.raises(OffsetsTopicMissing, match="has no topic 'no-such-topic' with the progress of MirrorMaker 2"):
        flow.run()
    assert end_offsets(west, flow.remote_topic) == {0: 0, 1: 0}


@contextmanager
def connect_worker(west: Broker, directory: Path) -> Iterator[tuple[Process, str, str]]:
    """A distributed worker, the address of its REST API, and its topic of offsets."""
    name, address = f"connect-{uuid4().hex[:8]}", f"http://{LOOPBACK}:{free_port()}"
    settings = {
        "bootstrap.servers": west.bootstrap,
        "group.id": name,
        "listeners": address,
        "offset.flush.interval.ms": 500,
        "plugin.discovery": "service_load",
        **{f"{side}.converter": "org.apache.kafka.connect.converters.ByteArrayConverter" for side in ("key", "value")},
        **{f"{what}.storage.topic": f"{name}-{what}" for what in ("config", "offset", "status")},
        **{f"{what}.storage.replication.factor": 1 for what in ("config", "offset", "status")},
    }
    file = directory / "worker.properties"
    file.write_text("\n".join(f"{key}={value}" for key, value in settings.items()))
    command = [str(find_java()), "-Xmx256m", "-XX:+UseSerialGC", *LOGGING, "-cp", classpath()]
    command += ["org.apache.kafka.connect.cli.ConnectDistributed", str(file)]
    process = start_process("Connect", command, directory / "connect.log")
    try:
        yield process, address, f"{name}-offset"
    finally:
        process.kill()


def asked(url: str, method: str = "GET", body: Mapping[str, object] | None = None) -> bytes:
    """A request to Connect, tried again until its worker, or the connector, is ready."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    patiently = Retrying(
        retry=retry_if_exception_type(OSError), stop=stop_after_delay(120), wait=wait_fixed(0.5), reraise=True
    )
    with patiently(urllib.request.urlopen, request, timeout=60) as answer:
        return bytes(answer.read())


@dataclass(frozen=True)
class Connected:
    """A connector from ``east`` to ``west`` on a worker, and what it copies."""

    east: Broker
    west: Broker
    alias: str
    topic: str
    worker: Process
    url: str
    offsets: str

    @property
    def remote_topic(self) -> str:
        return f"{self.alias}.{self.topic}"

    def flow(self, directory: Path) -> Mirror:
        """The flow that its configuration means, as Connect's REST API gives it."""
        (directory / "connector.json").write_bytes(asked(self.url))
        over = {f"{self.alias}->west.takeover.offsets.topics": self.offsets} | {
            f"{self.alias}->west.{what}.replication.factor": "1" for what in ("offset.storage", "checkpoints.topic")
        }
        configuration = load(directory / "connector.json", over)
        found = configuration.flow(f"{self.alias}->west")
        ledger = Ledger(f"sqlite:///{directory}/ledger.db").flow(found.name)
        return Mirror(self.east, self.west, self.topic, Opened(configuration, found, ledger))


@contextmanager
def connected(east: Broker, west: Broker, directory: Path) -> Iterator[Connected]:
    """A connector that has copied 200 records and written its progress."""
    alias = f"s{uuid4().hex[:8]}"
    topic = create_topic(east, f"orders-{alias}", 2)
    produce(east, topic, numbered(200))
    config = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": alias,
        "target.cluster.alias": "west",
        "source.cluster.bootstrap.servers": east.bootstrap,
        "target.cluster.bootstrap.servers": west.bootstrap,
        "topics": topic,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "emit.heartbeats.enabled": "false",
        "sync.topic.configs.enabled": "false",
    }
    with connect_worker(west, directory) as (process, address, offsets):
        url = f"{address}/connectors/{alias}%20to%20west"
        asked(f"{url}/config", "PUT", config)
        found = Connected(east, west, alias, topic, process, url, offsets)
        await_records(west, found.remote_topic, 200, process)
        await_records(west, offsets, 2, process)  # its progress of both partitions
        yield found


@pytest.mark.long
def test_a_connector_on_a_distributed_worker_that_was_killed(east: Broker, west: Broker, tmp_path: Path) -> None:
    """It was killed after its progress, with records past that."""
    with connected(east, west, tmp_path) as connector:
        produce(east, connector.topic, numbered(100, 200))
        await_records(west, connector.remote_topic, 300, connector.worker)
        flow = connector.flow(tmp_path)
        connector.worker.kill()
    produce(east, flow.topic, numbered(50, 300))
    assert flow.flow.settings.takeover_connector_name == f"{connector.alias} to west"
    assert flow.run().is_verified
    assert flow.assert_equal() == 350


@pytest.mark.long
@pytest.mark.parametrize("by", ["REST", "topic"])
def test_a_connector_goes_on_at_the_very_next_record(east: Broker, west: Broker, tmp_path: Path, by: str) -> None:
    """Stopped, taken over, handed back while more is produced, resumed: every record is there once, in order."""
    with connected(east, west, tmp_path) as connector:
        flow = connector.flow(tmp_path)
        asked(f"{connector.url}/stop", "PUT", {})
        await_state(connector, "STOPPED")
        produce(east, flow.topic, numbered(100, 200))
        assert flow.run().is_verified and flow.assert_equal() == 300
        produce(east, flow.topic, numbered(100, 300))
        if by == "REST":
            asked(f"{connector.url}/offsets", "PATCH", rest_body(flow.opened, positions(flow.opened)))
        else:
            name = flow.flow.settings.takeover_connector_name
            _, rounds = write_offsets(flow.opened, connector.offsets, name, "handback")
            assert not [each.error for each in rounds if each.error]
        asked(f"{connector.url}/resume", "PUT", {})
        produce(east, flow.topic, numbered(100, 400))
        await_records(west, connector.remote_topic, 500, connector.worker)
        asked(f"{connector.url}/stop", "PUT", {})
        await_state(connector, "STOPPED")
    assert flow.assert_equal() == 500


def await_state(connector: Connected, state: str) -> None:
    patiently = Retrying(
        retry=retry_if_exception_type(AssertionError), stop=stop_after_delay(120), wait=wait_fixed(0.3)
    )
    for attempt in patiently:
        with attempt:
            found = json.loads(asked(f"{connector.url}/status"))
            assert (found["connector"]["state"], found["tasks"]) == (state, []), found


def await_records(west: Broker, topic: str, count: int, process: Process) -> None:
    patiently = Retrying(retry=retry_if_exception_type(Exception), stop=stop_after_delay(120), wait=wait_fixed(0.3))
    for attempt in patiently:
        with attempt:
            assert process.running, process.log_tail()
            assert sum(end_offsets(west, topic).values()) >= count, process.log_tail()

"""The real MirrorMaker 2 of the tests: dedicated, or as a connector on a distributed worker of Kafka Connect."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import javaproperties
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from airmirror.config import load
from airmirror.flows.prepare import Opened
from airmirror.ledger import Ledger
from airmirror_local.brokers import LOGGING, Broker
from airmirror_local.jars import KAFKA_VERSION, classpath
from airmirror_local.java import find_java
from airmirror_local.mirrormaker import JAVA, start_mirrormaker
from airmirror_local.ports import LOOPBACK, free_port
from airmirror_local.processes import Process, start_process
from support.flows import Mirror
from support.topics import Record, create_topic, end_offsets, produce


def numbered(count: int, start: int = 0) -> list[Record]:
    return [Record(b"v%d" % n, b"k%d" % n, (), 1_700_000_000_000 + n) for n in range(start, start + count)]


@contextmanager
def dedicated(
    flow: Mirror, directory: Path, settings: Mapping[str, str] | None = None, *, version: str = KAFKA_VERSION
) -> Iterator[Process]:
    """MirrorMaker 2 in dedicated mode, as the flow's own configuration says; it writes its progress every half a second.

    ``settings``: further lines of its properties; ``version``: of Kafka.
    """
    source, target = flow.flow.source.alias, flow.flow.target.alias
    lines = {
        "clusters": f"{source}, {target}",
        f"{source}.bootstrap.servers": ", ".join(flow.flow.source.bootstrap_servers),
        f"{target}.bootstrap.servers": ", ".join(flow.flow.target.bootstrap_servers),
        f"{source}->{target}.enabled": "true",
        f"{source}->{target}.topics": flow.topic,
        f"{target}->{source}.emit.heartbeats.enabled": "false",
        f"{target}.offset.flush.interval.ms": "500",
        "emit.heartbeats.enabled": "false",
        "sync.topic.configs.enabled": "false",
        "sync.topic.acls.enabled": "false",
        "refresh.topics.interval.seconds": "5",
    } | {
        f"{what}.replication.factor": "1"
        for what in ("offset-syncs.topic", "checkpoints.topic", "offset.storage", "status.storage", "config.storage")
    }
    lines |= {"replication.factor": "1"} | dict(settings or {})
    file = directory / f"mm2-{uuid4().hex[:8]}.properties"
    file.write_text(javaproperties.dumps(lines, timestamp=None))
    process = start_mirrormaker(file, directory, version)
    try:
        yield process
    finally:
        process.kill()


@contextmanager
def connect_worker(
    west: Broker, directory: Path, more: Mapping[str, object] | None = None
) -> Iterator[tuple[Process, str, str]]:
    """A distributed worker, the address of its REST API, and its topic of offsets; ``more``: settings over its own."""
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
        **(more or {}),
    }
    file = directory / "worker.properties"
    file.write_text("\n".join(f"{key}={value}" for key, value in settings.items()))
    command = [str(find_java()), *JAVA, *LOGGING, "-cp", classpath()]
    command += ["org.apache.kafka.connect.cli.ConnectDistributed", str(file)]
    process = start_process("Connect", command, directory / "connect.log")
    try:
        yield process, address, str(settings["offset.storage.topic"])
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
    is_own: bool = False  # the topic of offsets is the connector's own, which its configuration names

    @property
    def remote_topic(self) -> str:
        return f"{self.alias}.{self.topic}"

    def flow(self, directory: Path) -> Mirror:
        """The flow that its configuration means, as Connect's REST API gives it."""
        (directory / "connector.json").write_bytes(asked(self.url))
        over = {
            f"{self.alias}->west.{what}.replication.factor": "1" for what in ("offset.storage", "checkpoints.topic")
        }
        if not self.is_own:
            over[f"{self.alias}->west.takeover.offsets.topics"] = self.offsets
        configuration = load(directory / "connector.json", over)
        found = configuration.flow(f"{self.alias}->west")
        ledger = Ledger(f"sqlite:///{directory}/ledger.db").flow(found.name)
        return Mirror(self.east, self.west, self.topic, Opened(configuration, found, ledger))


@contextmanager
def connected(east: Broker, west: Broker, directory: Path, *, exactly_once: bool = False) -> Iterator[Connected]:
    """A connector that has copied 200 records and written its progress; ``exactly_once``: into an offsets topic of its own."""
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
    worker = {}
    if exactly_once:
        worker = {"exactly.once.source.support": "enabled"}
        config |= {
            "exactly.once.support": "required",
            "offsets.storage.topic": f"{alias}-own-offsets",
            "consumer.isolation.level": "read_committed",
        }
    with connect_worker(west, directory, worker) as (process, address, of_workers):
        url = f"{address}/connectors/{alias}%20to%20west"
        asked(f"{url}/config", "PUT", config)
        offsets = config.get("offsets.storage.topic", of_workers)
        found = Connected(east, west, alias, topic, process, url, offsets, is_own=exactly_once)
        await_records(west, found.remote_topic, 200, process)
        await_records(west, offsets, 2, process)  # its progress of both partitions
        yield found


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

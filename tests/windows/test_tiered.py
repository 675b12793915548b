"""A source whose older mappings lie in a remote store (KIP-405) that is slow, or fails: everything is copied all the same."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tenacity import Retrying, stop_after_delay, wait_fixed

from airmirror.flows.verification import compare_all
from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from airmirror_local.jars import classpath
from support.flows import mirror
from support.needs import javac
from support.topics import Record, create_topic, produce, read_all

pytestmark = [pytest.mark.long, pytest.mark.timeout(500)]

COUNT = 3000
TOPIC = {
    "remote.storage.enable": "true",
    "segment.bytes": str(1 << 20),
    "local.retention.ms": "1",
    "retention.ms": "-1",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled store's directory."""
    compiler = javac()
    directory = tmp_path_factory.mktemp("store")
    source = Path(__file__).parent / "SlowStore.java"
    subprocess.run([str(compiler), "-cp", classpath(), "-d", directory, source], check=True)
    return directory


def tiered(directory: Path, store: Path, **config: str) -> Broker:
    return start_broker(
        directory,
        "tiered",
        IMPATIENT
        | {
            "remote.log.storage.system.enable": "true",
            "remote.log.storage.manager.class.name": "SlowStore",
            "remote.log.storage.manager.class.path": str(store),
            "remote.log.storage.manager.impl.prefix": "store.",
            "remote.log.metadata.manager.listener.name": "PLAINTEXT",
            "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
            "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
            "remote.log.manager.task.interval.ms": "500",
        }
        | {f"store.{name.replace('_', '.')}": value for name, value in config.items()},
    )


def records(count: int, start: int = 0) -> list[Record]:
    return [
        Record(b"v%d" % n + b"x" * 1000, b"k%d" % (n % 50), (), 1_700_000_000_000 + n)
        for n in range(start, start + count)
    ]


@pytest.mark.parametrize("kind", ["slow", "slow, and declared compacted once", "fails"])
def test_a_remote_store_that_is_slow_or_fails(west: Broker, tmp_path: Path, store: Path, kind: str) -> None:
    """Every third read takes longer than a fetch may (remote.fetch.max.wait.ms, 500), or ends with an error."""
    broker = tiered(tmp_path, store, **({"fails": "true"} if kind == "fails" else {"delay_ms": "900"}))
    try:
        topic = create_topic(broker, "orders-tiered", 1, TOPIC)
        produce(broker, topic, records(COUNT), records_per_batch=100)
        data = broker.directory / "data" / f"{topic}-0"
        for attempt in Retrying(stop=stop_after_delay(120), wait=wait_fixed(0.5), reraise=True):
            with attempt:
                assert len(list(data.glob("*.log"))) == 1, "older mappings are in the store alone"
        settings = {"config.properties.exclude": "remote.storage.enable, local.retention.*, segment.bytes"}
        if "declared" in kind:
            settings["topics.compacted"] = topic
        flow = mirror(broker, west, tmp_path, topic=topic, settings=settings)
        result = flow.run(slots=1)
        [row] = result.rows
        assert row.error is None, str(row.error)
        assert result.is_verified and (row.copied, row.holes) == (COUNT, 0)
        produce(broker, topic, records(10, COUNT))
        assert flow.run().is_verified
        assert [(each.error, each.records) for each in compare_all(flow.opened, [])] == [(None, COUNT + 10)]
        copies = read_all(west, flow.remote_topic)[0]  # not both sides: librdkafka gives up where a store fails
        assert [copy.content for copy in copies] == [record.content for record in records(COUNT + 10)]
    finally:
        broker.kill()

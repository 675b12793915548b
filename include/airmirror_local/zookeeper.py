"""A broker of the time before KRaft, with the ZooKeeper that it needs: for tests against the oldest Kafka (2.8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from airmirror_local.brokers import (
    QUICK_START,
    START_SECONDS,
    Broker,
    java,
    launch,
    wait_until_answering,
    with_listeners,
)
from airmirror_local.ports import LOOPBACK, answers, free_port
from airmirror_local.processes import Process, start_process, wait_until_ready
from airmirror_local.storage import write_properties


@contextmanager
def old_broker(
    directory: Path,
    name: str,
    version: str,
    properties: Mapping[str, str] | None = None,
    *,
    listeners: Mapping[str, str] | None = None,
) -> Iterator[Broker]:
    """A cluster of one node of ``version`` (2.x or 3.x), its data and logs in ``directory/name``; ``listeners``: more of them,
    name -> security protocol.

    Raises JarsNotResolved, or ProcessFailed with the end of a log.
    """
    home = (directory / name).resolve()
    home.mkdir(parents=True)
    zookeeper, address = _start_zookeeper(home, version)
    try:
        port = free_port()
        settings = {
            "broker.id": "1",
            "zookeeper.connect": address,
            "listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
            "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT",
            "log.dirs": str(home / "data"),
            "log.retention.ms": "-1",
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": "4",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }
        ports = {listener: free_port() for listener in listeners or {}}
        settings = with_listeners(settings | dict(properties or {}), ports, listeners or {})
        write_properties(home / "server.properties", settings)
        process = launch(home, QUICK_START, version)
        broker = Broker(
            name=name,
            bootstrap=f"{LOOPBACK}:{port}",
            directory=home,
            process=process,
            proxy_port=None,
            proxied_port=None,
            java_options=QUICK_START,
            listeners={listener: f"{LOOPBACK}:{its}" for listener, its in ports.items()},
            version=version,
        )
        try:
            wait_until_answering(broker, nodes=1)
            yield broker
        finally:
            broker.kill()
    finally:
        zookeeper.kill()


def _start_zookeeper(home: Path, version: str) -> tuple[Process, str]:
    port = free_port()
    settings = {"dataDir": str(home / "zookeeper"), "clientPort": str(port), "clientPortAddress": LOOPBACK}
    write_properties(home / "zookeeper.properties", settings | {"admin.enableServer": "false"})
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    command = [*java(QUICK_START, version), main, str(home / "zookeeper.properties")]
    process = start_process(f"zookeeper {home.name}", command, home / "zookeeper.log")
    wait_until_ready(process, lambda: answers(port), START_SECONDS)
    return process, f"{LOOPBACK}:{port}"

"""Kafka brokers on loopback: a cluster of one or several KRaft nodes, each broker and controller in one process.

Copies a formatted storage, starts the nodes on free ports and returns when all of them answer. Everything else is Kafka's own
default, except what a small cluster needs and that nothing ages: real records are old, and must not expire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from airmirror_local import class_data
from airmirror_local.jars import KAFKA_VERSION, classpath
from airmirror_local.java import find_java
from airmirror_local.ports import LOOPBACK, answers, free_port
from airmirror_local.processes import Process, start_process, wait_until_ready
from airmirror_local.storage import format_storage, new_id, write_properties

START_SECONDS = 180
# Up within two seconds on one core, at the price of throughput: for demo and tests.
QUICK_START = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
ARCHIVES = "-XX:ArchiveClassesAtExit="  # makes an archive of classes, and can't use one
# What kafka-server-start.sh and kafka-run-class.sh pass: for benchmarks.
KAFKA_DEFAULTS = (
    "-Xms1g",
    "-Xmx1g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
LOGGING = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)
# Kafka works in the background every few seconds or minutes; tests do not wait that long.
IMPATIENT = {
    "broker.session.timeout.ms": "3000",  # how long a killed node's place stays taken
    "broker.heartbeat.interval.ms": "500",
    "metadata.max.idle.interval.ms": "10000",  # a node with nothing to do writes that into its log, twice a second by default
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "5000",
    "log.cleaner.backoff.ms": "1000",  # it looks at every log each time, also at those of tests that are over
    "log.cleaner.dedupe.buffer.size": str(16 << 20),
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
    # A group without members and offsets, which a test has just made, is forgotten at the next look, ten minutes after the first.
    "offsets.retention.check.interval.ms": "86400000",
    # As few threads as one client needs: each wakes up several times a second for nothing.
    "num.network.threads": "1",  # a listener
    "num.io.threads": "2",
    "background.threads": "2",
    "group.coordinator.threads": "1",
    "share.coordinator.threads": "1",
}


@dataclass
class Broker:
    """One node. A proxy listens on ``proxy_port`` and forwards to ``proxied_port``, when the node was told of one."""

    name: str
    bootstrap: str
    directory: Path
    process: Process
    proxy_port: int | None
    proxied_port: int | None
    java_options: tuple[str, ...] = field(repr=False)
    listeners: Mapping[str, str] = field(default_factory=dict)  # those that were asked for: name -> host:port
    version: str = KAFKA_VERSION

    @property
    def log(self) -> Path:
        return self.process.log

    @property
    def port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])

    def stop(self) -> None:
        """A controlled shutdown."""
        self.process.stop()

    def kill(self) -> None:
        self.process.kill()

    def pause(self) -> None:
        self.process.pause()

    def resume(self) -> None:
        self.process.resume()

    def restart(self) -> None:
        """Start the node again with its ports and data, after ``stop`` or ``kill`` (or stop it first); waits for it."""
        self.stop()
        self.process = launch(self.directory, self.java_options, self.version)
        wait_until_answering(self, nodes=1)


@dataclass(frozen=True)
class BrokerCluster:
    """Several nodes of one cluster."""

    name: str
    brokers: tuple[Broker, ...]

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)

    def stop(self) -> None:
        for broker in self.brokers:
            broker.kill()  # the last nodes of a quorum would wait in vain for a controlled shutdown


def start_broker(
    directory: Path,
    name: str,
    properties: Mapping[str, str] | None = None,
    *,
    java_options: Sequence[str] = QUICK_START,
    proxy_port: int | None = None,
    listeners: Mapping[str, str] | None = None,
    features: Mapping[str, int] | None = None,
    version: str = KAFKA_VERSION,
) -> Broker:
    """A cluster of one node, its data and log in ``directory/name``. ``properties`` go over those of this module.

    With ``proxy_port`` the node has a second listener for clients that come through a proxy at that port, and tells
    them to come back through it; airmirror_local.proxy starts the proxy. ``listeners``: more of them, name -> security
    protocol; ``properties`` say what they need. ``features``: levels of features that are not the version's own, such as
    ``transaction.version`` 0, the first protocol of transactions. ``version``: of Kafka, 3.3 or later (earlier ones:
    airmirror_local.zookeeper).
    Raises ProcessFailed with the end of the broker's log.
    """
    cluster = start_cluster(
        directory,
        name,
        nodes=1,
        properties=properties,
        java_options=java_options,
        proxy_port=proxy_port,
        listeners=listeners,
        features=features,
        version=version,
    )
    return cluster.brokers[0]


def start_cluster(
    directory: Path,
    name: str,
    nodes: int = 3,
    properties: Mapping[str, str] | None = None,
    *,
    java_options: Sequence[str] = QUICK_START,
    proxy_port: int | None = None,
    listeners: Mapping[str, str] | None = None,
    features: Mapping[str, int] | None = None,
    version: str = KAFKA_VERSION,
    between: Callable[[int, int, int], object] | None = None,
) -> BrokerCluster:
    """A cluster of ``nodes`` nodes, internal topics and new topics replicated up to three times; else as start_broker.

    ``proxy_port`` stands for the first node. ``between`` is given, before any node runs, each node, a port at which the other
    nodes are told to reach it, and the port at which it listens: it forwards what nodes have to say to each other.
    """
    controllers = {node: free_port() for node in range(1, nodes + 1)}
    voters = {node: free_port() if between else port for node, port in controllers.items()}
    cluster_id = new_id()
    brokers: list[Broker] = []
    try:
        for node in controllers:
            home = (directory / (name if nodes == 1 else f"{name}-{node}")).resolve()
            home.mkdir(parents=True)
            port, proxied_port = free_port(), None
            settings = _settings(home, node, port, controllers[node], voters) | dict(properties or {})
            if between is not None:
                own, told = free_port(), free_port()
                settings = _apart(settings, (own, told), voters[node])
                between(node, told, own)
                between(node, voters[node], controllers[node])
            if proxy_port is not None and node == 1:
                proxied_port = free_port()
                settings = _with_proxy(settings, proxied_port, proxy_port)
            ports = {listener: free_port() for listener in listeners or {}}
            settings = with_listeners(settings, ports, listeners or {})
            write_properties(home / "server.properties", settings)
            format_storage(home / "data", node, cluster_id, lambda: java(version=version), version, features or {})
            process = launch(home, tuple(java_options), version)
            address = f"{LOOPBACK}:{port}"
            brokers.append(
                Broker(
                    name=home.name,
                    bootstrap=address,
                    directory=home,
                    process=process,
                    proxy_port=proxy_port if node == 1 else None,
                    proxied_port=proxied_port,
                    java_options=tuple(java_options),
                    listeners={listener: f"{LOOPBACK}:{its}" for listener, its in ports.items()},
                    version=version,
                )
            )
        for broker in brokers:
            wait_until_answering(broker, nodes)
    except BaseException:
        for broker in brokers:
            broker.kill()
        raise
    return BrokerCluster(name, tuple(brokers))


def _settings(home: Path, node: int, port: int, controller: int, voters: Mapping[int, int]) -> dict[str, str]:
    replicas = str(min(3, len(voters)))
    in_sync = str(min(2, len(voters)))
    return {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "controller.quorum.voters": ",".join(f"{voter}@{LOOPBACK}:{its}" for voter, its in voters.items()),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT",
        "log.dirs": str(home / "data"),
        "log.retention.ms": "-1",
        "auto.create.topics.enable": "false",
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
    }


def _with_proxy(settings: dict[str, str], port: int, proxy_port: int) -> dict[str, str]:
    return settings | {
        "listeners": f"{settings['listeners']},PROXIED://{LOOPBACK}:{port}",
        "advertised.listeners": f"{settings['advertised.listeners']},PROXIED://{LOOPBACK}:{proxy_port}",
    }


def _apart(settings: dict[str, str], ports: tuple[int, int], voter: int) -> dict[str, str]:
    """A listener of its own for other brokers, which are told of another port than it listens at, as controllers are."""
    own, told = ports
    return settings | {
        "inter.broker.listener.name": "BETWEEN",
        "listeners": f"{settings['listeners']},BETWEEN://{LOOPBACK}:{own}",
        "advertised.listeners": f"{settings['advertised.listeners']},BETWEEN://{LOOPBACK}:{told},CONTROLLER://{LOOPBACK}:{voter}",
        "listener.security.protocol.map": f"{settings['listener.security.protocol.map']},BETWEEN:PLAINTEXT",
    }


def with_listeners(settings: dict[str, str], ports: Mapping[str, int], protocols: Mapping[str, str]) -> dict[str, str]:
    """Add listeners of these names, at ports and of security protocols by name, to a broker's settings."""
    more = "".join(f",{name}://{LOOPBACK}:{port}" for name, port in ports.items())
    kinds = "".join(f",{name}:{protocols[name]}" for name in ports)
    return settings | {
        "listeners": settings["listeners"] + more,
        "advertised.listeners": settings["advertised.listeners"] + more,
        "listener.security.protocol.map": settings["listener.security.protocol.map"] + kinds,
    }


def launch(home: Path, java_options: tuple[str, ...], version: str = KAFKA_VERSION) -> Process:
    """Start the node whose ``server.properties`` lie in ``home``."""
    start, *arguments = java(java_options, version)
    is_quick = java_options[: len(QUICK_START)] == QUICK_START and not any(
        ARCHIVES in option for option in java_options
    )
    shared = class_data.options(class_data.archive_of(Path(start), version)) if is_quick else ()
    command = [start, *shared, *arguments, "kafka.Kafka", str(home / "server.properties")]
    return start_process(f"broker {home.name}", command, home / "broker.log")


def java(java_options: Sequence[str] = QUICK_START, version: str = KAFKA_VERSION) -> list[str]:
    """The command that runs a class of Kafka's."""
    return [str(find_java()), *java_options, *LOGGING, "-cp", classpath(version=version)]


def wait_until_answering(broker: Broker, nodes: int) -> None:
    """Until the node knows of all ``nodes`` brokers."""

    def answering() -> bool:
        if not answers(broker.port):
            return False
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        try:
            return len(admin.list_topics(timeout=2).brokers) >= nodes
        except KafkaException:
            return False

    wait_until_ready(broker.process, answering, START_SECONDS)

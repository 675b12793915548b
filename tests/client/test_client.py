"""Answers to applications, compared with those of MirrorMaker 2's own Java client on the same topics."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from airmirror import client
from airmirror.client import ClusterNotAnswering, NoCheckpoints
from airmirror.errors import AirmirrorError
from airmirror.wire.checkpoints import Checkpoint
from airmirror_local.brokers import Broker
from airmirror_local.jars import classpath
from airmirror_local.java import java_home
from airmirror_local.ports import LOOPBACK, free_port
from support.flows import Mirror, mirror
from support.groups import commit
from support.heartbeats import east, heartbeats_deleted, west
from support.needs import javac
from support.post_window import emit
from support.topics import Record, create_topic, produce

GROUP, MOVED = "billing", "moved-by-airmirror"
COMPACTED = {"cleanup.policy": "compact"}


@dataclass(frozen=True)
class Replicated:
    """``orders`` of the first cluster is on the second, and so are its heartbeats and those that came to it from ``origin``."""

    first: Broker
    second: Broker
    there: Mirror

    @property
    def alias(self) -> str:
        return self.there.flow.source.alias

    @property
    def checkpoints(self) -> str:
        return f"{self.alias}.checkpoints.internal"


def checkpoint_records(*checkpoints: Checkpoint) -> list[Record]:
    return [Record(each.encode_value(), each.encode_key()) for each in checkpoints]


@pytest.fixture(scope="module")
def replicated(east: Broker, west: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicated]:
    directory = tmp_path_factory.mktemp("client")
    with heartbeats_deleted(east, west):
        for name in ("heartbeats", "origin.heartbeats"):
            create_topic(east, name, config=COMPACTED)
            produce(east, name, [Record(b"a heartbeat", b"key")])
        there = mirror(east, west, directory, partitions=2)
        produce(east, there.topic, [Record(b"%d" % n, b"%d" % n) for n in range(100)])
        assert there.run().is_verified
        found = Replicated(east, west, there)
        create_topic(west, found.checkpoints, config=COMPACTED)
        remote = there.remote_topic
        written = checkpoint_records(
            Checkpoint(GROUP, remote, 0, 3, 4),
            Checkpoint(group=GROUP, topic=remote, partition=1, upstream=1, downstream=1, metadata="somewhere"),
            Checkpoint("other", remote, 0, 50, 51),
            Checkpoint(group=GROUP, topic=remote, partition=0, upstream=30, downstream=33, metadata="мета"),
        )
        produce(west, found.checkpoints, [*written, Record(b"\0\0garbage", b"key"), Record(b"", b"")])
        commit(east, MOVED, {(there.topic, 0): 10, (there.topic, 1): 20})
        assert emit(there, MOVED) == 2
        yield found


def test_positions_of_a_group_are_the_last_checkpoints(replicated: Replicated) -> None:
    properties = {"bootstrap.servers": replicated.second.bootstrap, "group.id": GROUP}
    positions = client.translate_offsets(properties, replicated.alias, GROUP)
    remote = replicated.there.remote_topic
    assert [(each.topic, each.partition, each.offset, each.metadata) for each in positions] == [
        (remote, 0, 33, "мета"),
        (remote, 1, 1, "somewhere"),
    ]
    assert client.translate_offsets(properties, replicated.alias, "nobody") == []
    moved = client.translate_offsets(properties, replicated.alias, MOVED)
    assert [(each.topic, each.partition, each.offset) for each in moved] == [(remote, 0, 10), (remote, 1, 20)]
    # They are what a consumer takes.
    consumer = Consumer(properties | {"enable.auto.commit": False})
    try:
        consumer.commit(offsets=positions, asynchronous=False)
        committed = consumer.committed([TopicPartition(remote, 0), TopicPartition(remote, 1)], timeout=120)
    finally:
        consumer.close()
    assert [each.offset for each in committed] == [33, 1]


def test_a_deleted_checkpoint_is_gone(replicated: Replicated) -> None:
    alias = f"{replicated.alias}deleted"
    topic = create_topic(replicated.second, f"{alias}.checkpoints.internal", config=COMPACTED)
    gone, kept = Checkpoint(GROUP, "t", 0, 1, 1), Checkpoint(GROUP, "t", 1, 2, 2)
    produce(replicated.second, topic, [*checkpoint_records(gone, kept), Record(None, gone.encode_key())])
    found = client.translate_offsets({"bootstrap.servers": replicated.second.bootstrap}, alias, GROUP)
    assert [(each.partition, each.offset) for each in found] == [(1, 2)]


def test_what_came_from_where(replicated: Replicated) -> None:
    properties = {"consumer.bootstrap.servers": replicated.second.bootstrap}
    alias = replicated.alias
    heartbeats = {f"{alias}.heartbeats", f"{alias}.origin.heartbeats"}
    assert client.remote_topics(properties, alias) == {replicated.there.remote_topic, *heartbeats}
    assert client.remote_topics(properties, alias) <= client.remote_topics(properties)
    assert client.remote_topics(properties, "elsewhere") == set()
    assert client.heartbeat_topics(properties) == heartbeats
    assert replicated.checkpoints in client.checkpoint_topics(properties)
    assert client.upstream_clusters(properties) == {alias, "origin"}
    hops = [client.replication_hops(properties, cluster) for cluster in (alias, "origin", "elsewhere")]
    assert hops == [1, 2, -1]


POLICIES = {
    "default": {},
    "separator": {"replication.policy.separator": "_", "replication.policy.internal.topic.separator.enabled": "false"},
    "identity": {
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "source.cluster.alias": "origin",
    },
}


@pytest.mark.parametrize(
    ("side", "name"),
    [
        pytest.param("first", "default", marks=pytest.mark.long),
        ("second", "separator"),
        pytest.param("second", "identity", marks=pytest.mark.long),
        pytest.param("second", "default", marks=pytest.mark.long),
    ],
)
def test_mirrormaker_2s_own_client_gives_the_same_answers(replicated: Replicated, side: str, name: str) -> None:
    javac()
    broker = replicated.first if side == "first" else replicated.second
    properties = POLICIES[name] | {"bootstrap.servers": broker.bootstrap}
    aliases = [replicated.alias, "origin", "elsewhere"]
    questions = ["heartbeat_topics", "checkpoint_topics", "upstream_clusters", "remote_topics"]
    questions += [f"{kind} {alias}" for alias in aliases for kind in ("remote_topics", "replication_hops")]
    if side == "second" and name != "identity":
        questions += [f"translate_offsets {replicated.alias} {group}" for group in (GROUP, MOVED)]
    theirs = ask_java(properties, questions)
    ours = {question: ask_python(properties, question) for question in questions}
    assert side == "first" or name == "identity" or theirs[questions[-1]] == moved_positions(replicated)
    # Airmirror's own topics are no remote topics; MirrorClient knows nothing of them.
    for question in questions:
        if question.startswith("remote_topics"):
            kept = [topic for topic in theirs[question].split() if not topic.startswith("airmirror-mappings.")]
            theirs[question] = " ".join(kept)
    assert ours == theirs


def moved_positions(replicated: Replicated) -> str:
    """Where Airmirror's own checkpoints say that the group is: one window has copied all, so that offsets are equal."""
    return "{" + ", ".join(f"{replicated.there.remote_topic}-{number}={at}/" for number, at in ((0, 10), (1, 20))) + "}"


def ask_java(properties: dict[str, str], questions: list[str]) -> dict[str, str]:
    command = [str(java_home() / "bin" / "java"), "-XX:TieredStopAtLevel=1", "-cp", classpath()]
    command += [str(Path(__file__).with_name("MirrorMaker.java")), *(f"{key}={properties[key]}" for key in properties)]
    done = subprocess.run(command, input="\n".join(questions), capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    answers = [line.removeprefix("ANSWER ") for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    return dict(zip(questions, answers, strict=True))


def ask_python(properties: dict[str, str], question: str) -> str:
    name, *arguments = question.split()
    found = getattr(client, name)(properties, *arguments)
    if name == "translate_offsets":
        positions = {f"{each.topic}-{each.partition}": f"{each.offset}/{each.metadata or ''}" for each in found}
        return "{" + ", ".join(f"{key}={positions[key]}" for key in sorted(positions)) + "}"
    return str(found) if name == "replication_hops" else " ".join(sorted(found))


def test_what_is_missing_is_said(replicated: Replicated) -> None:
    properties = {"bootstrap.servers": replicated.second.bootstrap}
    with pytest.raises(NoCheckpoints, match=r"'esat\.checkpoints\.internal'") as missing:
        client.translate_offsets(properties, "esat", GROUP)
    assert replicated.checkpoints in missing.value.there and replicated.checkpoints in str(missing.value)
    nobody = {"bootstrap.servers": f"{LOOPBACK}:{free_port()}", "log_level": 0}
    with pytest.raises(ClusterNotAnswering, match="brokers") as silent:
        client.replication_hops(nobody, "east", timeout=1)
    error: AirmirrorError = silent.value
    assert error.transient


ALONE = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "airmirror", "confluent_kafka"}:
            raise ImportError(f"{name} is no part of confluent-kafka")
sys.meta_path.insert(0, Refuse())
import airmirror.client
loaded = {name for name in sys.modules if name.startswith("airmirror.")}
print(sorted({".".join(name.split(".")[:2]) for name in loaded}))
"""

__all__ = ["east", "west"]


def test_nothing_but_confluent_kafka_is_needed() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['airmirror.client', 'airmirror.errors', 'airmirror.naming', 'airmirror.wire']"

"""MirrorMaker 2's own CheckpointConnector runs on the offset syncs that Airmirror writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from airmirror.client import NoCheckpoints, translate_offsets
from airmirror.offsets.syncs import emit_offset_syncs
from airmirror_local.brokers import LOGGING, Broker
from airmirror_local.jars import classpath
from airmirror_local.java import find_java
from airmirror_local.ports import LOOPBACK, free_port
from airmirror_local.processes import Process, start_process
from support.flows import Mirror, mirror
from support.topics import Record, produce, read_all

GROUP = "billing"
START_SECONDS = 90
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@contextmanager
def checkpoint_connector(flow: Mirror, east: Broker, west: Broker, directory: Path) -> Iterator[Process]:
    """Connect, standalone, with MirrorCheckpointConnector alone: nothing of MirrorMaker 2 copies or writes offset syncs."""
    worker = {
        "bootstrap.servers": west.bootstrap,
        "key.converter": BYTES,
        "value.converter": BYTES,
        "offset.storage.file.filename": directory / "connect.offsets",
        "offset.flush.interval.ms": 1000,
        "listeners": f"http://{LOOPBACK}:{free_port()}",
        "plugin.discovery": "service_load",
    }
    connector = {
        "name": "MirrorCheckpointConnector",
        "connector.class": "org.apache.kafka.connect.mirror.MirrorCheckpointConnector",
        "source.cluster.alias": flow.flow.source.alias,
        "target.cluster.alias": flow.flow.target.alias,
        "source.cluster.bootstrap.servers": east.bootstrap,
        "target.cluster.bootstrap.servers": west.bootstrap,
        "topics": flow.topic,
        "groups": GROUP,
        "emit.checkpoints.interval.seconds": 1,
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": 1,
        "checkpoints.topic.replication.factor": 1,
        "offset-syncs.topic.replication.factor": 1,
    }
    files = []
    for name, settings in (("worker", worker), ("connector", connector)):
        files.append(directory / f"{name}.properties")
        files[-1].write_text("\n".join(f"{key}={value}" for key, value in settings.items()))
    command = [
        str(find_java()),
        "-Xmx256m",
        "-XX:+UseSerialGC",
        *LOGGING,
        "-cp",
        classpath(),
        "org.apache.kafka.connect.cli.ConnectStandalone",
        *map(str, files),
    ]
    process = start_process("MirrorCheckpointConnector", command, directory / "connect.log")
    try:
        yield process
    finally:
        process.kill()


def test_mirrormaker_2s_checkpoint_connector_runs_on_our_offset_syncs(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    flow = mirror(east, west, tmp_path, partitions=3, settings={"offset-syncs.topic.replication.factor": "1"})
    for number in range(3):
        for part in range(4):  # every transaction leaves a marker, so that offsets differ on the two sides
            records = [Record(b"%d/%d/%d" % (number, part, n)) for n in range(50)]
            produce(east, flow.topic, records, partition=number, transactional="commit" if part % 2 else "abort")
            produce(east, flow.topic, [Record(b"%d/%d/last" % (number, part))], partition=number)
        assert flow.run().is_verified
        emit_offset_syncs(flow.flow, flow.opened.ledger, window=f"syncs-{number}")
    sources, targets = read_all(east, flow.topic), read_all(west, flow.remote_topic)
    place = {record.value: record.offset for records in targets.values() for record in records}
    # The group has read partition 0 to its end, 1 up to somewhere in the middle, and is at the first record of 2.
    middle = sources[1][len(sources[1]) // 2]
    at = {0: sources[0][-1].offset + 1, 1: middle.offset, 2: sources[2][0].offset}
    exact = {0: targets[0][-1].offset + 1, 1: place[middle.value], 2: targets[2][0].offset}
    consumer = Consumer({"bootstrap.servers": east.bootstrap, "group.id": GROUP, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(flow.topic, *each) for each in at.items()], asynchronous=False)
    consumer.close()
    properties = {"bootstrap.servers": west.bootstrap, "log_level": 0}
    with checkpoint_connector(flow, east, west, tmp_path) as process:
        for attempt in Retrying(
            retry=retry_if_exception_type((NoCheckpoints, AssertionError)),
            stop=stop_after_delay(START_SECONDS),
            wait=wait_fixed(0.5),
            reraise=True,
        ):
            with attempt:
                assert process.running, process.log_tail()
                found = translate_offsets(properties, flow.flow.source.alias, GROUP)
                assert {each.partition for each in found} == set(at), process.log_tail()
    translated = {each.partition: each.offset for each in found}
    assert {each.topic for each in found} == {flow.remote_topic}
    assert translated[0] == exact[0] and translated[2] == exact[2]
    assert 0 < translated[1] <= exact[1]  # MirrorMaker 2's rule: never past a sync by more than one

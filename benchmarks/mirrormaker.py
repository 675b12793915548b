"""MirrorMaker 2 in dedicated mode: started, watched at the target's end offsets, ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient

from airmirror_local.brokers import LOGGING
from airmirror_local.jars import classpath
from airmirror_local.java import find_java
from airmirror_local.processes import Process, ProcessFailed, start_process
from benchmarks.data import PARTITIONS, Data, create_topic, delete_topics, latest
from benchmarks.measurements import Measurement
from benchmarks.usage import processor_seconds
from benchmarks.windows import Sites

# What connect-mirror-maker.sh and kafka-run-class.sh pass.
JAVA_OPTIONS = (
    "-Xms256M",
    "-Xmx2G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
DEFAULTS = """
clusters = east, west
east.bootstrap.servers = {source}
west.bootstrap.servers = {target}
east->west.enabled = true
east->west.topics = {topic}
tasks.max = 4
replication.factor = {replicas}
checkpoints.topic.replication.factor = {replicas}
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
config.storage.replication.factor = 1
"""
TUNED = (
    DEFAULTS
    + """
west.producer.batch.size = 327680
west.producer.linger.ms = 100
west.producer.buffer.memory = 225000000
east.consumer.fetch.max.bytes = 52428800
east.consumer.max.partition.fetch.bytes = 52428800
east.consumer.max.poll.records = 50000
"""
)
# A run that finds another's progress goes on there, and at the end of a topic copies nothing.
OWN_ON_TARGET = tuple(f"mm2-{kind}.east.internal" for kind in ("offsets", "configs", "status"))
OWN_ON_SOURCE = ("mm2-offset-syncs.west.internal",)
START_SECONDS = 90
WARM_UP_SECONDS = 6  # after its first record: the JVM compiles, and every task has begun
STEADY_SECONDS = 18
SAMPLE_SECONDS = 0.25
STILL_SECONDS = 3  # without a new record: it has arrived at the end


def measure(
    directory: Path,
    source: str,
    target: str,
    data: Data,
    config: str,
    *,
    replicas: int = 1,
    partitions: int = PARTITIONS,
) -> Measurement:
    """MirrorMaker 2's steady rate, from some seconds after its first record to the topic's end or for STEADY_SECONDS.

    Leaves nothing behind. Raises ProcessFailed when nothing arrives.
    """
    remote = f"east.{data.topic}"
    create_topic(target, remote, partitions=partitions, replicas=replicas)
    admin = AdminClient({"bootstrap.servers": target, "log_level": 0})
    process = _started(directory, config.format(source=source, target=target, topic=data.topic, replicas=replicas))
    try:
        samples: list[tuple[float, int, float]] = []  # time, records on the target, processor seconds
        begun = time.monotonic()
        while True:
            now, records = time.monotonic(), sum(latest(admin, remote, partitions))
            if not process.running or (not samples and now - begun > START_SECONDS):
                raise ProcessFailed("MirrorMaker 2", "copied nothing", process.log, process.log_tail())
            if records and (not samples or records > samples[-1][1]):
                samples.append((now, records, processor_seconds(process.handle)))
            if samples and (
                now - samples[-1][0] > STILL_SECONDS or now - samples[0][0] > WARM_UP_SECONDS + STEADY_SECONDS
            ):
                break
            time.sleep(SAMPLE_SECONDS)  # the sampling interval
    finally:
        process.kill()
        delete_topics(target, remote, *OWN_ON_TARGET)
        delete_topics(source, *OWN_ON_SOURCE)
    return steady(samples)


@contextmanager
def running(sites: Sites, topic: str, config: str) -> Iterator[None]:
    """MirrorMaker 2 while the block runs."""
    text = config.format(source=sites.source, target=sites.target, topic=topic, replicas=sites.replicas)
    process = _started(sites.directory, text)
    try:
        yield
    finally:
        process.kill()


def _started(directory: Path, config: str) -> Process:
    file = directory / "mm2.properties"
    file.write_text(config)
    command = [
        str(find_java()),
        *JAVA_OPTIONS,
        *LOGGING,
        "-cp",
        classpath(),
        "org.apache.kafka.connect.mirror.MirrorMaker",
        str(file),
    ]
    return start_process("MirrorMaker 2", command, directory / "mm2.log")


def steady(samples: list[tuple[float, int, float]]) -> Measurement:
    """Without the warm-up, or from the first sample on where the topic ended before that."""
    warm = [sample for sample in samples if sample[0] - samples[0][0] >= WARM_UP_SECONDS]
    chosen = warm if len(warm) >= 8 else samples
    (first, before, used), (last, after, all_used) = chosen[0], chosen[-1]
    return Measurement(after - before, last - first, all_used - used)

"""Windows under ``@continuous``: what lies between two, and how long records take from end to end.

Everything is read from the clusters when all is over: the times of commits and of gates stand in the mapping topic, those
of records and heartbeats in the records themselves. All on one machine, so on one clock.
"""

from __future__ import annotations

import statistics
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from confluent_kafka import Producer
from rich.console import Console

from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience, read_records
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Flow, load
from airmirror.naming import mapping_topic
from airmirror.partitions import TopicPartition
from airmirror.wire.mappings import MappingRecord, Verified, decode
from airmirror.wire.plain import LogRecord
from airmirror_local.airflow_client import AirflowClient
from airmirror_local.stack import DAG_ID, FLOW, Stack
from benchmarks.data import PARTITIONS, create_topic

TOPIC, HEARTBEATS = "steady", "heartbeats"
RECORD_BYTES, BURSTS = 100, 20  # bursts a second
HEARTBEATS_DAG = "heartbeats.east"
WARM_RUNS, WAIT_SECONDS = 3, 300


@dataclass(frozen=True)
class Continuous:
    """What was measured, in seconds; ``gaps`` from a window's verdict to the next one's first commit."""

    gaps: list[float]
    cycles: list[float]
    heartbeats_readable: list[float]
    heartbeats_verified: list[float]
    records_readable: list[float]
    tasks: list[tuple[str, float, float]]
    """Medians of each task's start and end, and of the run's own, in seconds since the run was queued."""


@dataclass
class VerifiedTimes:
    """The gates' verdicts of a partition in log order: up to which source offset, and when."""

    offsets: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)

    def time_of(self, offset: int) -> int | None:
        place = bisect_left(self.offsets, offset)
        return self.times[place] if place < len(self.times) else None


def measure_continuous(stack: Stack, seconds: int, rate: int, console: Console) -> Continuous:
    """A steady ``rate`` of records for so many seconds, heartbeats beside it; the flow's DAG runs by itself."""
    create_topic(stack.east.bootstrap, TOPIC)
    with stack.client() as client:
        client.wait(lambda: HEARTBEATS_DAG in client.dag_ids(), WAIT_SECONDS)
        client.unpause(HEARTBEATS_DAG)
        client.unpause(DAG_ID)
        client.wait(lambda: len(_succeeded(client)) >= WARM_RUNS, WAIT_SECONDS)
        with _producing(stack.east.bootstrap, rate):
            before = len(_succeeded(client))
            client.wait(lambda: len(_succeeded(client)) > before + 1, WAIT_SECONDS)
            begin = time.time()
            with console.status(f"{rate:,} records a second for {seconds} s"):
                threading.Event().wait(seconds)
            end = time.time()
            before = len(_succeeded(client))
            client.wait(lambda: len(_succeeded(client)) > before + 1, WAIT_SECONDS)  # the last ones, verified
        client.pause(DAG_ID)
        tasks = _tasks(client, begin, end)
    flow = load(stack.configuration).flow(FLOW)
    return _measured(flow, int(begin * 1000), int(end * 1000), tasks)


def _measured(flow: Flow, begin_ms: int, end_ms: int, tasks: list[tuple[str, float, float]]) -> Continuous:
    commits: dict[TopicPartition, list[MappingRecord]] = {}
    judged: dict[TopicPartition, VerifiedTimes] = {}
    first: dict[str, int] = {}  # by run: its first commit and its last verdict
    last: dict[str, int] = {}
    with Routes(flow.source, "bench") as source, Routes(flow.target, "bench") as target:
        for record in records_of(target, TopicPartition(mapping_topic(flow.source.alias), 0)):
            said = decode(record.key or b"", record.value)
            if isinstance(said, MappingRecord) and said.copied:
                commits.setdefault(TopicPartition(said.topic, said.partition), []).append(said)
                run = said.window.partition("#")[0]
                first[run] = min(first.get(run, said.time_ms), said.time_ms)
            elif isinstance(said, Verified):
                place = judged.setdefault(TopicPartition(said.topic, said.partition), VerifiedTimes())
                place.offsets.append(said.offset)
                place.times.append(said.time_ms)
                run = said.window.partition("#")[0]
                last[run] = max(last.get(run, said.time_ms), said.time_ms)
        taken: dict[str, list[tuple[float, float]]] = {}
        source.refresh([HEARTBEATS, TOPIC])
        for key in [TopicPartition(HEARTBEATS, 0), *(TopicPartition(TOPIC, number) for number in range(PARTITIONS))]:
            found = taken.setdefault(key.topic, [])
            for mapping in commits.get(key, ()):
                for record in read_records(source, key, mapping.source_start, mapping.source_end):
                    verified = judged[key].time_of(record.offset)
                    if begin_ms <= record.timestamp < end_ms and verified is not None:
                        found.append(
                            ((mapping.time_ms - record.timestamp) / 1000, (verified - record.timestamp) / 1000)
                        )
    runs = sorted((moment, last[run]) for run, moment in first.items() if run in last and begin_ms <= moment < end_ms)
    return Continuous(
        gaps=[(after[0] - before[1]) / 1000 for before, after in pairwise(runs)],
        cycles=[(after[0] - before[0]) / 1000 for before, after in pairwise(runs)],
        heartbeats_readable=[readable for readable, _ in taken[HEARTBEATS]],
        heartbeats_verified=[verified for _, verified in taken[HEARTBEATS]],
        records_readable=[readable for readable, _ in taken[TOPIC]],
        tasks=tasks,
    )


def records_of(routes: Routes, partition: TopicPartition) -> Iterator[LogRecord]:
    """Every record of a small topic's partition."""
    routes.refresh([partition.topic])
    start, end = (offsets_with_patience(routes, [partition], at)[partition] for at in (EARLIEST, LATEST))
    yield from read_records(routes, partition, start, end)


@contextmanager
def _producing(bootstrap: str, rate: int) -> Iterator[None]:
    """So many records a second, in bursts, their timestamps those of their making."""
    producer, ended = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0}), threading.Event()

    def produce() -> None:
        due = time.monotonic()
        while not ended.wait(max(0.0, due - time.monotonic())):
            for number in range(rate // BURSTS):
                producer.produce(TOPIC, b"x" * RECORD_BYTES, partition=number % PARTITIONS)
            producer.poll(0)
            due += 1 / BURSTS

    thread = threading.Thread(target=produce, name="producer")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        producer.flush(30)


def _succeeded(client: AirflowClient) -> list[dict[str, Any]]:
    return [run for run in client.runs(DAG_ID) if run["state"] == "success"]


def _tasks(client: AirflowClient, begin: float, end: float) -> list[tuple[str, float, float]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for run in _succeeded(client):
        queued = _epoch(run["queued_at"])
        if queued < begin or _epoch(run["end_date"]) > end:
            continue
        found.setdefault("run", []).append((_epoch(run["start_date"]) - queued, _epoch(run["end_date"]) - queued))
        for name, task in client.tasks(DAG_ID, run["dag_run_id"]).items():
            if task["start_date"] and task["end_date"]:
                times = _epoch(task["start_date"]) - queued, _epoch(task["end_date"]) - queued
                found.setdefault(name, []).append(times)
    medians = [(name, *(statistics.median(each) for each in zip(*times, strict=True))) for name, times in found.items()]
    return sorted(medians, key=lambda task: task[1:])


def _epoch(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()

"""The plan of a large cluster: requests are batched, so that it takes seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from airmirror.clusters.protocol.groups import Committed, commit_offsets
from airmirror.clusters.protocol.routes import Routes
from airmirror.flows.prepare import prepare
from airmirror.partitions import TopicPartition
from airmirror.runbooks.migration.plan import DAY_MS, migration_plan
from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from support.flows import mirror
from support.topics import Record, admin, create_topic, produce

TOPICS, GROUPS, SECONDS = 2_000, 1_000, 60.0


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[tuple[Broker, Broker]]:
    """Two clusters of this test's own."""
    started: list[Broker] = []
    try:
        for name in ("east", "west"):
            started.append(start_broker(tmp_path, name, IMPATIENT))
        yield started[0], started[1]
    finally:
        for broker in started:
            broker.kill()


@pytest.mark.long
def test_two_thousand_topics_and_a_thousand_groups(clusters: tuple[Broker, Broker], tmp_path: Path) -> None:
    east, west = clusters
    names = [f"topic-{number:04d}" for number in range(TOPICS)]
    for start in range(0, TOPICS, 200):
        made = admin(east).create_topics([NewTopic(name, 1, 1) for name in names[start : start + 200]])
        for future in made.values():
            future.result(120)
    first = create_topic(east, "topic-first")
    flow = mirror(east, west, tmp_path, topic="topic-.*")
    produce(east, first, [Record(b"%d" % n) for n in range(100)], partition=0, transactional="commit")
    prepare(flow.opened)
    flow.run()
    positions = {
        f"group-{number:04d}": {TopicPartition(names[2 * number + each], 0): Committed(0) for each in (0, 1)}
        for number in range(GROUPS)
    }
    with Routes(flow.flow.source, "test") as routes:
        assert commit_offsets(routes, positions) == {}
    began, worked = time.monotonic(), time.process_time()
    facts = migration_plan(flow.opened, 7 * DAY_MS).facts
    took, works = time.monotonic() - began, time.process_time() - worked
    print(
        f"{len(facts.remote)} topics, {len(facts.source.groups)} groups: {took:.1f} s, {works:.1f} s of processor time"
    )
    assert len(facts.remote) == TOPICS + 1 and len(facts.source.groups) == GROUPS and len(facts.moves) == GROUPS + 1
    assert works < SECONDS / 2, "the brokers' part is as much again, and a busy machine's is no fault of the plan"

"""Repartition topics of Kafka Streams: what the application has handled is deleted before or after it is copied; no loss."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from confluent_kafka import TopicPartition

from airmirror.flows.verification import compare_all
from airmirror.slot.errors import SourceTruncated
from airmirror_local.brokers import Broker
from support.failovers import PLANNED, fail_over, windowed, with_groups
from support.flows import Mirror, mirror
from support.following import numbered
from support.groups import commit, committed
from support.topics import SECONDS, Cluster, admin, create_topic, produce, read_all


def purge(cluster: Cluster, topic: str, before: int) -> None:
    asked = admin(cluster).delete_records([TopicPartition(topic, 0, before)])
    next(iter(asked.values())).result(SECONDS)


def purged(east: Broker, west: Broker, directory: Path, *, declared: bool) -> tuple[Mirror, str]:
    """A flow of a repartition topic with 30 records copied, then 20 more of which 10 were deleted, then 5."""
    application = f"app-{uuid4().hex[:8]}"
    topic = create_topic(east, f"{application}-words-repartition")
    settings = {"streams.applications": application, "topics": "nothing-else"} if declared else {"topics": topic}
    flow = with_groups(mirror(east, west, directory, topic=topic, settings=settings), application)
    produce(east, topic, numbered(30), partition=0)
    assert flow.run().is_verified
    produce(east, topic, numbered(20, 30), partition=0)
    purge(east, topic, 40)
    produce(east, topic, numbered(5, 50), partition=0)
    return flow, application


def test_what_was_handled_before_it_was_copied_is_no_loss(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, application = purged(east, west, tmp_path, declared=True)
    assert flow.run().is_verified
    there = [each.value for each in read_all(west, flow.remote_topic)[0]]
    assert there == [b"v%d" % number for number in (*range(30), *range(40, 55))]
    record = flow.opened.ledger.last_mappings()[flow.topic, 0]
    assert (record.source_start, record.source_end, record.copied, record.holes) == (30, 55, 15, 10)
    assert [(row.records, row.errors) for row in compare_all(flow.opened, ())] == [(15, ())]
    commit(east, application, {(flow.topic, 0): 47})
    fail_over(flow.opened, PLANNED)
    ((_, position),) = committed(west, application).items()
    (following,) = (each for each in read_all(west, flow.remote_topic)[0] if each.offset == position)
    assert following.value == b"v47"


def test_all_that_was_not_copied_may_have_been_handled(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = purged(east, west, tmp_path, declared=True)
    purge(east, flow.topic, 55)
    windowed(flow)
    record = flow.opened.ledger.last_mappings()[flow.topic, 0]
    assert (record.source_end, record.copied, record.holes) == (55, 0, 25)
    produce(east, flow.topic, numbered(3, 55), partition=0)
    assert flow.run().is_verified and len(read_all(west, flow.remote_topic)[0]) == 33


def test_of_any_other_topic_it_is_a_loss_that_is_told(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = purged(east, west, tmp_path, declared=False)
    assert [type(row.error) for row in flow.run().rows] == [SourceTruncated]

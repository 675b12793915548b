"""Taking over from a MirrorMaker 2 on a Connect cluster, whose workers keep its progress in a topic of theirs."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.runbooks.takeover.copies import await_stopped
from airmirror.runbooks.takeover.handback import positions, rest_body, write_offsets
from airmirror.runbooks.takeover.order import HandbackOrder
from airmirror.topics.internal import ensure_internal_topics
from airmirror.topics.sync import apply, look
from airmirror.windows.connect_offsets import OffsetsTopicMissing
from airmirror.windows.resets import Choice
from airmirror.windows.takeover import TailDiffers
from airmirror.wire.mirrormaker import source_offset_key, source_offset_value
from airmirror_local.brokers import Broker
from support.faults import unseen_before_the_starts
from support.flows import Mirror, mirror
from support.mirrormaker import asked, await_records, await_state, connected, numbered
from support.topics import Record, create_topic, end_offsets, produce, read_all

NAME = "our mirror"


def on_connect(east: Broker, west: Broker, directory: Path, topic: str) -> Mirror:
    settings = {"takeover.offsets.topics": topic, "takeover.connector.name": NAME}
    return mirror(east, west, directory, partitions=2, settings=settings)


def note(flow: Mirror, topic: str, partition: int, offset: int | None, *, at: int, **key: object) -> None:
    """What a worker writes into one partition of its topic, ``at`` a time: the progress of a partition of ours."""
    named = {"cluster": flow.flow.source.alias, "topic": flow.topic, "partition": partition, "connector": NAME} | key
    value = None if offset is None else source_offset_value(offset)
    record = Record(value, source_offset_key(**named), (), 1_700_000_000_000 + at)  # type: ignore[arg-type]
    produce(flow.target, topic, [record], partition=at % 3)


def test_the_progress_of_the_connector_counts_where_nothing_is_known(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    topic = create_topic(west, f"connect-offsets-{uuid4()}", 3, {"cleanup.policy": "compact"})
    flow = on_connect(east, west, tmp_path, topic)
    for partition in (0, 1):
        produce(east, flow.topic, numbered(100, 100 * partition), partition=partition)
    apply(flow.flow, look(flow.flow))
    ensure_internal_topics(flow.flow)
    produce(west, flow.remote_topic, read_all(east, flow.topic)[0][:70], partition=0)  # 20 of them after its progress
    note(flow, topic, 0, 10, at=1)
    note(flow, topic, 0, 49, at=3)  # the topic was given more partitions between the two
    note(flow, topic, 0, 99, at=4, connector="another")
    note(flow, topic, 0, 99, at=5, cluster="another")
    note(flow, topic, 1, 99, at=6)
    note(flow, topic, 1, None, at=9)  # taken back
    produce(west, topic, [Record(b"{}", b'["sink",{"kafka_topic":"x"}]'), Record(b"\xff", b"\xff")], partition=0)
    assert flow.run().is_verified
    assert flow.assert_equal() == 200
    note(flow, topic, 0, 5, at=12)  # of no account any more
    produce(east, flow.topic, numbered(10, 300))
    assert flow.run().is_verified
    assert flow.assert_equal() == 210


def test_a_partition_that_was_not_seen_at_first_continues_after_it_too(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something is known of its topic then, and nothing of it."""
    topic = create_topic(west, f"connect-offsets-{uuid4()}", 3)
    flow = on_connect(east, west, tmp_path, topic)
    apply(flow.flow, look(flow.flow))
    ensure_internal_topics(flow.flow)
    for partition in (0, 1):
        produce(east, flow.topic, numbered(100, 100 * partition), partition=partition)
        produce(west, flow.remote_topic, read_all(east, flow.topic)[partition][:70], partition=partition)
        note(flow, topic, partition, 49, at=partition)
    assert not unseen_before_the_starts(monkeypatch, flow, 1)
    assert [row.error is None for row in flow.run().rows] == [True, False]
    assert flow.run().is_verified
    assert flow.assert_equal() == 200


def test_a_loss_is_accepted_after_the_connector_s_progress(east: Broker, west: Broker, tmp_path: Path) -> None:
    """As the error says; it was copied from its first record on again."""
    topic = create_topic(west, f"connect-offsets-{uuid4()}", 3)
    flow = on_connect(east, west, tmp_path, topic)
    produce(east, flow.topic, numbered(100), partition=0)
    apply(flow.flow, look(flow.flow))
    ensure_internal_topics(flow.flow)
    produce(west, flow.remote_topic, read_all(east, flow.topic)[0][:70], partition=0)
    produce(west, flow.remote_topic, [Record(b"somebody else's")], partition=0)
    note(flow, topic, 0, 49, at=1)
    (differs,) = [row.error for row in flow.run().rows if row.error is not None]
    assert isinstance(differs, TailDiffers) and "--accept-loss" in str(differs)
    order = ResetOrder((flow.topic,), (), Choice.ACCEPT_LOSS, by="me", reason="a test")
    (reset,) = carry_out(flow.opened, order)
    assert (reset.start, reset.lost) == (50, 0)
    assert flow.run().copied == 50
    assert len(read_all(west, flow.remote_topic)[0]) == 121


def test_a_topic_of_workers_that_is_not_there_is_an_error(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = on_connect(east, west, tmp_path, "no-such-topic")
    produce(east, flow.topic, numbered(10))
    with pytest.raises(OffsetsTopicMissing, match="has no topic 'no-such-topic' with the progress of MirrorMaker 2"):
        flow.run()
    assert end_offsets(west, flow.remote_topic) == {0: 0, 1: 0}


@pytest.mark.long
def test_a_connector_on_a_distributed_worker_that_was_killed(east: Broker, west: Broker, tmp_path: Path) -> None:
    """It was killed after its progress, with records past that."""
    with connected(east, west, tmp_path) as connector:
        produce(east, connector.topic, numbered(100, 200))
        await_records(west, connector.remote_topic, 300, connector.worker)
        flow = connector.flow(tmp_path)
        connector.worker.kill()
    await_stopped(flow.opened, 60)  # it stays a member of its group until its session ends
    produce(east, flow.topic, numbered(50, 300))
    assert flow.flow.settings.takeover_connector_name == f"{connector.alias} to west"
    assert flow.run().is_verified
    assert flow.assert_equal() == 350


@pytest.mark.long
@pytest.mark.parametrize("by", ["REST", "topic"])
def test_a_connector_continues_at_the_very_next_record(east: Broker, west: Broker, tmp_path: Path, by: str) -> None:
    """Stopped, taken over, handed back while more is produced, resumed: every record is there once, in order."""
    with connected(east, west, tmp_path) as connector:
        flow = connector.flow(tmp_path)
        asked(f"{connector.url}/stop", "PUT", {})
        await_state(connector, "STOPPED")
        produce(east, flow.topic, numbered(100, 200))
        assert flow.run().is_verified and flow.assert_equal() == 300
        produce(east, flow.topic, numbered(100, 300))
        if by == "REST":
            asked(f"{connector.url}/offsets", "PATCH", rest_body(flow.opened, positions(flow.opened)))
        else:
            name = flow.flow.settings.takeover_connector_name
            _, tasks = write_offsets(flow.opened, HandbackOrder(into=connector.offsets, connector=name))
            assert not [each.error for each in tasks if each.error]
        asked(f"{connector.url}/resume", "PUT", {})
        produce(east, flow.topic, numbered(100, 400))
        await_records(west, connector.remote_topic, 500, connector.worker)
        asked(f"{connector.url}/stop", "PUT", {})
        await_state(connector, "STOPPED")
    assert flow.assert_equal() == 500

"""A target that stamps records with its own time: refused unless declared, and then all but times is compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.clusters.admin.alteration import alter_configs
from airmirror.clusters.admin.client import connect
from airmirror.clusters.admin.description import ConfigChange
from airmirror.flows.audit import audit, ranges_of
from airmirror.flows.prepare import prepare
from airmirror.flows.verification import compare_all
from airmirror_local.brokers import Broker
from support.flows import Mirror, mirror
from support.topics import Codec, Record, create_topic, produce, read_all

STAMPED = {"message.timestamp.type": "LogAppendTime"}
DECLARED = {"topics.log.append.time": "orders-.*"}


def records(count: int, start: int = 0) -> list[Record]:
    return [
        Record(b"v%d" % n, b"k%d" % (n % 5), (("h", b"%d" % n), ("h", None)), 1_500_000_000_000 + n)
        for n in range(start, start + count)
    ]


def same_but_for_times(flow: Mirror) -> int:
    here, there = read_all(flow.source, flow.topic), read_all(flow.target, flow.remote_topic)
    assert {p: [r.content[:3] for r in found] for p, found in here.items()} == {
        p: [r.content[:3] for r in found] for p, found in there.items()
    }
    assert {record.timestamp_type for found in there.values() for record in found} == {2}
    return sum(map(len, there.values()))


@pytest.mark.parametrize(
    ("verify", "codec", "per_batch"),
    [
        ("readback", "lz4", 1),
        pytest.param("acks", "lz4", 40, marks=pytest.mark.long),
        pytest.param("readback", "none", 40, marks=pytest.mark.long),
    ],
)
def test_declared(east: Broker, west: Broker, tmp_path: Path, verify: str, codec: Codec, per_batch: int) -> None:
    flow = mirror(east, west, tmp_path, partitions=2, settings=DECLARED | {"window.verify": verify})
    create_topic(west, flow.remote_topic, 2, STAMPED)
    for start in (0, 100):
        produce(east, flow.topic, records(100, start), codec=codec, records_per_batch=per_batch)
        result = flow.run()
        assert result.is_verified and result.copied == 100
    assert same_but_for_times(flow) == 200
    assert prepare(flow.opened).report.changes == ()  # the target's choice is left alone
    rows = compare_all(flow.opened, [])
    assert sum(row.records for row in rows) == 200 and not [row.error for row in rows if row.error]
    ranges, _ = ranges_of(flow.opened, [flow.topic], 0, 1_600_000_000_000)
    found = audit(flow.opened, ranges, refuse_before=True, refuse_missing=True)
    assert found.errors == [] and sum(part.equal for part in found.partitions) == 200
    assert {(bucket.source, bucket.target) for bucket in found.buckets.values()} == {(200, 200)}


def test_what_an_interrupted_window_left_is_judged_without_times(east: Broker, west: Broker, tmp_path: Path) -> None:
    """A gate that takes nobody's word reads the target again."""
    from airmirror.windows.judging import no_objection
    from airmirror.windows.window import WindowOrder, run_window, verify_window
    from support.flows import in_this_process

    flow = mirror(east, west, tmp_path, settings=DECLARED)
    create_topic(west, flow.remote_topic, 1, STAMPED)
    produce(east, flow.topic, records(50))
    prepared = prepare(flow.opened)
    run_window(
        flow.flow,
        flow.opened.ledger,
        prepared.topics,
        in_this_process,
        WindowOrder("w", slots=lambda _: 1, advance=False),
    )
    judged = verify_window(flow.flow, flow.opened.ledger, no_objection, window="judge", trusted=())
    assert [verdict.error for verdict in judged.verdicts] == [None]


def test_not_declared(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(50))
    assert flow.run().copied == 50
    change = ConfigChange(flow.remote_topic, "message.timestamp.type", "CreateTime", "LogAppendTime")
    alter_configs(connect(flow.flow.target), [change])
    produce(east, flow.topic, records(50, 50))
    prepared = prepare(flow.opened)
    assert prepared.topics == {}
    assert f"naming {flow.topic!r} in topics.log.append.time" in prepared.refused[0]
    assert len(read_all(west, flow.remote_topic)[0]) == 50


def test_taken_over_from_mirrormaker_without_times(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Its progress is there and its last records are past it: they are recognised by all but their times."""
    from airmirror.windows.mirror import Mirror
    from airmirror.windows.plan import Planned
    from airmirror.windows.takeover import TailDiffers, TakenOver, take_over

    flow = mirror(east, west, tmp_path, settings=DECLARED)
    create_topic(west, flow.remote_topic, 1, STAMPED)
    for cluster, topic in ((east, flow.topic), (west, flow.remote_topic)):
        produce(cluster, topic, records(30))
    item = Planned(
        topic=flow.topic,
        partition=0,
        remote_topic=flow.remote_topic,
        start=20,
        end=30,
        high_watermark=30,
    )
    with Mirror.open(flow.flow, flow.opened.ledger, "test") as both:
        both.source.refresh([flow.topic])
        both.target.refresh([flow.remote_topic])
        found = take_over(both, item)
        assert isinstance(found, TakenOver) and found.end == 30
        undeclared = replace(flow.flow.settings, topics_log_append_time=())
        with_times = take_over(replace(both, flow=replace(flow.flow, settings=undeclared)), item)
        assert isinstance(with_times, TailDiffers)  # by their times they are no records of the source

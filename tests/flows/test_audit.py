"""Audits of intervals and offsets: what is compared, what a window is bounded to, what is refused, what differs."""

from __future__ import annotations

from pathlib import Path

from airmirror.clusters.admin.appender import Appender
from airmirror.flows.audit import BUCKET_MS, Audit, BeforeFirstReplicated, NotReplicated, Range, audit, ranges_of
from airmirror.flows.audit_report import as_text, shown_audit
from airmirror.flows.holds import add_holds
from airmirror.flows.prepare import prepare
from airmirror.naming import mapping_topic
from airmirror.offsets.syncs import place_of_syncs
from airmirror.partitions import TopicPartition
from airmirror.report.canonical import canonical, parsed
from airmirror.report.page import page
from airmirror.windows.errors import TargetDiffers, Unaccounted
from airmirror.windows.results import WindowResult
from airmirror.windows.window import WindowOrder, run_window
from airmirror_local.brokers import Broker
from support.flows import Mirror, in_this_process, mirror
from support.topics import Record, admin, create_topic, delete_topic, produce, read_all

HOUR = 3_600_000
START = 1_700_000_000_000 // HOUR * HOUR


def records(first: int, count: int) -> list[Record]:
    """A record a minute."""
    return [Record(b"value-%d" % n, b"key-%d" % n, (), START + n * 60_000) for n in range(first, first + count)]


def window(mirror: Mirror, name: str, until: dict[int, int] | None = None) -> WindowResult:
    prepared = prepare(mirror.opened)
    ends = None if until is None else {TopicPartition(mirror.topic, number): end for number, end in until.items()}
    return run_window(
        mirror.flow,
        mirror.opened.ledger,
        prepared.topics,
        in_this_process,
        WindowOrder(name, slots=lambda _: 2, until=ends),
    )


def audited(mirror: Mirror, begin: int, end: int, refuse_before: bool = True) -> Audit:
    ranges, unavailable = ranges_of(mirror.opened, [mirror.topic], begin, end)
    assert not unavailable
    return audit(mirror.opened, ranges, refuse_before=refuse_before, refuse_missing=True)


def test_intervals_follow_one_another_without_a_gap(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path, partitions=2)
    for partition in (0, 1):
        produce(east, flow.topic, records(0, 150), partition=partition, records_per_batch=7)
    # One record of the future does not move what lies before it, and none after the last hour is lost.
    produce(east, flow.topic, [Record(b"future", b"f", (), START + 900 * HOUR)], partition=0)
    produce(east, flow.topic, records(150, 5), partition=0)
    assert window(flow, "w1").copied == 306
    found = [audited(flow, START + hour * HOUR, START + (hour + 1) * HOUR) for hour in range(4)]
    assert [[(item.range.start, item.range.end) for item in one.partitions] for one in found] == [
        [(0, 60), (0, 60)],
        [(60, 120), (60, 120)],
        [(120, 150), (120, 150)],
        [],
    ]
    assert [sum(item.equal for item in one.partitions) for one in found] == [120, 120, 60, 0]
    assert not any(one.errors for one in found)
    buckets = found[0].buckets
    assert list(buckets) == [START + number * BUCKET_MS for number in range(6)]
    assert all(bucket.source == bucket.target == 20 for bucket in buckets.values())
    assert all(bucket.latency_ms > 0 and bucket.latency_max >= bucket.latency_ms for bucket in buckets.values())
    rest = audited(flow, START + 3 * HOUR, START + 1000 * HOUR)
    assert [(item.range.start, item.range.end, item.equal) for item in rest.partitions] == [(150, 156, 6)]


def test_what_lies_beyond_progress_is_replicated_up_to_the_end_only(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path, partitions=2)
    for partition in (0, 1):
        produce(east, flow.topic, records(0, 150), partition=partition, records_per_batch=40)
    prepare(flow.opened)
    before = audited(flow, START, START + HOUR)
    assert [type(error) for error in before.errors] == [NotReplicated] * 2
    assert [item.missing for item in before.partitions] == [60, 60]
    assert window(flow, "w1", {0: 60}).copied == 60  # in mid-batch, and nothing of the other partition
    after = audited(flow, START, START + HOUR)
    assert [item.equal for item in after.partitions] == [60, 0] and len(after.errors) == 1
    assert window(flow, "w2", {0: 60, 1: 60}).copied == 60
    assert window(flow, "w3", {0: 60, 1: 60}).copied == 0  # again: nothing
    assert not audited(flow, START, START + HOUR).errors
    assert window(flow, "w4").copied == 180
    assert flow.assert_equal() == 300
    assert sum(item.equal for item in audited(flow, START, START + 3 * HOUR).partitions) == 300
    for partition in (0, 1):
        produce(east, flow.topic, records(150, 5), partition=partition)
    add_holds(flow.opened, flow.topic, [1], reason="somebody looks at it", by="me")
    ranges, _ = ranges_of(flow.opened, [flow.topic], START, START + 3 * HOUR)
    for is_strict, held in (
        (True, 1),
        (False, 0),
    ):  # what came late is the next window's; of what is held there is none
        found = audit(flow.opened, ranges, refuse_before=is_strict, refuse_missing=False)
        assert [type(error) for error in found.errors] == [NotReplicated] * held
        assert [item.missing for item in found.partitions] == [5, 5]


def test_what_is_older_than_the_first_replicated_offset_is_refused(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path, settings={"consumer.auto.offset.reset": "latest"})
    produce(east, flow.topic, records(0, 90))
    window(flow, "w1")
    produce(east, flow.topic, records(90, 30))
    window(flow, "w2")
    first, second = audited(flow, START, START + HOUR), audited(flow, START + HOUR, START + 2 * HOUR)
    (error,) = first.errors
    assert isinstance(error, BeforeFirstReplicated) and (error.first, error.last, error.replicated) == (0, 59, 90)
    (error,) = second.errors
    assert isinstance(error, BeforeFirstReplicated) and (error.first, error.last) == (60, 89)
    assert second.partitions[0].equal == 30
    tolerant = audited(flow, START, START + 2 * HOUR, refuse_before=False)
    assert not tolerant.errors and (tolerant.partitions[0].before, tolerant.partitions[0].equal) == (90, 30)


def test_a_difference_is_found_and_both_sides_are_counted(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(0, 60))
    assert window(flow, "w1").copied == 60
    # Another log under the same mappings: the target's topic, where the tenth record is another one.
    other = [*records(0, 9), Record(b"another", b"key-9", (), START + 9 * 60_000), *records(10, 50)]
    delete_topic(west, flow.remote_topic)
    create_topic(west, flow.remote_topic)
    produce(west, flow.remote_topic, other)
    found = audited(flow, START, START + HOUR)
    (error,) = found.errors
    assert isinstance(error, TargetDiffers) and (error.offset, error.target_offset) == (9, 9)
    assert [(bucket.source, bucket.target) for bucket in found.buckets.values()] == [(10, 10)] * 6
    (row,) = found.partitions
    assert row.range.key == TopicPartition(flow.topic, 0) and row.equal < 60
    made = shown_audit(found, flow.flow.name, "a<b")
    assert "key, value, headers or timestamp are not equal" in as_text(made) and not made.is_good
    shown = page(parsed(canonical(made.as_dict() | {"signer": None})))
    assert "a&lt;b" in shown and shown.count("<polyline ") == 3 and "not equal" in shown
    assert "2023-11-14 22:00" in shown and "records on the target, at most 10; " in shown


def test_what_is_missing_on_the_target_is_counted(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Ten minutes were not replicated, and of ten the mapping record is gone."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(0, 60), records_per_batch=5)
    for number, end in enumerate((20, 30, 50)):
        window(flow, f"w{number}", {0: end})
    second = list(flow.opened.ledger.mappings(flow.topic, 0))[1]
    with Appender(flow.flow.target, mapping_topic(flow.flow.source.alias)) as appender:
        appender.append([(second.encode_key(), None)])
    found = audited(flow, START, START + HOUR)
    counts = [(bucket.source, bucket.target) for bucket in found.buckets.values()]
    assert counts == [(10, 10), (10, 10), (10, 0), (10, 10), (10, 10), (10, 0)]
    assert all(bucket.latency_ms > 0 for bucket in list(found.buckets.values())[:2])
    (error,) = found.errors
    assert isinstance(error, Unaccounted) and (error.first, error.last) == (20, 29)
    assert (found.partitions[0].equal, found.partitions[0].missing) == (40, 10)
    syncs = place_of_syncs(flow.flow)[1]
    if syncs in admin(east).list_topics(timeout=30).topics:  # other flows' tests share it
        told = [record.key or b"" for log in read_all(east, syncs).values() for record in log]
        assert not any(flow.topic.encode() in key for key in told), "an audit, and its windows, write no offset syncs"


def test_offsets_in_the_middle_of_batches(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(0, 100), records_per_batch=30)
    assert window(flow, "w1").copied == 100
    found = audit(flow.opened, [Range(flow.topic, 0, 13, 77)], refuse_before=True, refuse_missing=True)
    assert not found.errors and found.partitions[0].equal == 64

"""Whatever the source's log looks like: every record on the target exactly once, equal, in order; every offset counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from airmirror.wire import merging
from airmirror.wire.aborted import AbortedFilter
from airmirror_local.brokers import Broker
from support.flows import Mirror, mirror
from support.topics import Codec, Record, await_settled, end_offsets, open_transaction, produce, read_all

CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")


def records(count: int, start: int = 0, size: int = 60) -> list[Record]:
    return [
        Record(
            f"v{number}".encode() + b"x" * size,
            None if number % 7 == 0 else f"k{number % 5}".encode(),
            (("h", b"1"), ("h", None), ("größe", str(number).encode())),
            1_700_000_000_000 + number * 13 % 1000,
        )
        for number in range(start, start + count)
    ]


def accounted(flow: Mirror) -> None:
    """Invariants A, C and E: mappings cover everything up to progress, and their counts add up."""
    ledger = flow.opened.ledger
    progress = ledger.progress()
    for (topic, partition), last in ledger.last_mappings().items():
        position = 0
        for record in ledger.mappings(topic, partition):
            assert record.source_start == position
            total = record.copied + record.control + record.aborted + record.holes
            assert total == record.source_end - record.source_start
            position = record.source_end
        assert position == last.source_end == progress[(topic, partition)] + 1
        assert ledger.verified()[(topic, partition)].offset == progress[(topic, partition)]


@pytest.mark.parametrize(
    ("codec", "per_batch"),
    [
        ("lz4", 10),
        ("none", 1000),
        # test_any_log.py has every codec, and batches of one record to more than a megabyte.
        *(pytest.param(codec, 1, marks=pytest.mark.long) for codec in ("lz4", "none")),
        *(pytest.param(codec, 10, marks=pytest.mark.long) for codec in CODECS if codec != "lz4"),
        *(pytest.param(codec, 1000, marks=pytest.mark.long) for codec in CODECS if codec != "none"),
    ],
)
def test_every_codec_and_batch_size(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: Codec, per_batch: int
) -> None:
    monkeypatch.setattr(merging, "MERGED_FROM", 30)  # of ten a batch, one partition's go whole, the other's are merged
    flow = mirror(east, west, tmp_path, partitions=2)
    for start in (0, 500):
        produce(east, flow.topic, records(500, start), codec=codec, records_per_batch=per_batch)
        result = flow.run()
        assert result.is_verified and result.copied == 500
    assert flow.assert_equal() == 1000
    accounted(flow)


@pytest.mark.parametrize("named", [True, False])
def test_transactions_committed_aborted_and_open(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """Also by a leader whose answers do not name the aborted ones: a node that followed before may leave them out."""
    begin = AbortedFilter.begin
    if not named:
        monkeypatch.setattr(AbortedFilter, "begin", lambda self, _told, *place: begin(self, (), *place))
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(100), transactional="commit")
    produce(east, flow.topic, records(50, 100), transactional="abort")
    produce(east, flow.topic, records(100, 150))
    with open_transaction(east, flow.topic, records(10, 250)):
        result = flow.run()
        assert result.is_verified and result.copied == 200
        assert result.rows[0].aborted == 50 and result.rows[0].control == 2
        assert result.rows[0].lag > 0, "lag is measured to the high watermark"
    flow.run()
    assert flow.assert_equal() == 200
    accounted(flow)


def test_read_uncommitted_copies_aborted_records(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path, settings={"consumer.isolation.level": "read_uncommitted"})
    produce(east, flow.topic, records(20), transactional="abort")
    produce(east, flow.topic, records(20, 20))
    assert flow.run().copied == 40
    assert flow.assert_equal("read_uncommitted") == 40


def test_a_window_that_ends_and_begins_inside_a_batch(east: Broker, west: Broker, tmp_path: Path) -> None:
    from dataclasses import replace

    from support.flows import in_this_process

    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(100), records_per_batch=100)

    def only_to(end: int):  # type: ignore[no-untyped-def]
        return lambda slots: in_this_process(
            [replace(slot, partitions=tuple(replace(p, end=end) for p in slot.partitions)) for slot in slots]
        )

    assert flow.run(only_to(37)).copied == 37
    assert flow.run(only_to(38)).copied == 1
    assert flow.run().copied == 62
    assert flow.assert_equal() == 100
    accounted(flow)


def test_a_batch_larger_than_the_target_takes_is_split(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path, settings={"sync.topic.configs.enabled": "false"})
    flow.run()  # makes the remote topic
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    from support.topics import admin

    entry = ConfigEntry("max.message.bytes", "2000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, flow.remote_topic, incremental_configs=[entry])
    client = admin(west)
    for future in client.incremental_alter_configs([resource]).values():
        future.result()
    produce(east, flow.topic, records(300), records_per_batch=300)
    result = flow.run()
    assert result.is_verified, result.rows
    assert flow.assert_equal() == 300
    # a single record that is too large is an error of its partition, with what comes before it copied
    produce(east, flow.topic, [*records(3, 300), *records(1, 303, size=5000), *records(2, 304)])
    result = flow.run()
    assert not result.is_verified
    assert type(result.rows[0].error).__name__ == "RecordTooLarge" and "offset 303" in str(result.rows[0].error)
    assert sum(map(len, read_all(west, flow.remote_topic).values())) == 303


def test_log_append_time_keeps_the_time_each_record_had(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path, config={"message.timestamp.type": "LogAppendTime"})
    produce(east, flow.topic, records(50), records_per_batch=10)
    assert flow.run().is_verified
    assert flow.assert_equal() == 50
    assert {record.timestamp_type for record in read_all(west, flow.remote_topic)[0]} == {1}


def test_a_compacted_topic_with_holes(east: Broker, west: Broker, tmp_path: Path) -> None:
    from tenacity import Retrying, stop_after_delay, wait_fixed

    settings = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.ms": "100",
        "max.compaction.lag.ms": "100",
    }
    flow = mirror(east, west, tmp_path, config=settings)
    for start in (0, 40, 80):
        produce(east, flow.topic, [Record(b"v%d" % n, b"k%d" % (n % 7)) for n in range(start, start + 40)])
    for attempt in Retrying(stop=stop_after_delay(120), wait=wait_fixed(0.2), reraise=True):
        with attempt:
            produce(east, flow.topic, [Record(b"roll", b"roll")])
            assert len(read_all(east, flow.topic)[0]) < 60
    end = end_offsets(east, flow.topic)[0]
    result = flow.run()
    assert result.is_verified, [str(row.error) for row in result.rows]
    assert result.rows[0].holes > 0 and result.rows[0].source_end == end
    accounted(flow)


def test_nothing_new_is_a_window_without_a_transaction(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(10))
    assert flow.run(window="once").copied == 10
    end = await_settled(west, flow.remote_topic)
    again = flow.run(window="once")
    assert again.copied == 10 and again.is_verified  # what the window did; nothing more was done
    assert flow.run().rows == ()
    assert end_offsets(west, flow.remote_topic) == end


def test_latest_skips_what_was_there_and_nothing_later(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path, partitions=2, settings={"consumer.auto.offset.reset": "latest"})
    produce(east, flow.topic, records(10), partition=0)
    assert flow.run().copied == 0
    produce(east, flow.topic, records(10, 10), partition=0)
    produce(east, flow.topic, records(10, 20), partition=1)
    assert flow.run().is_verified
    copied = read_all(west, flow.remote_topic)
    assert [record.content for record in copied[0]] == [record.content for record in read_all(east, flow.topic)[0][10:]]
    assert [record.content for record in copied[1]] == [record.content for record in read_all(east, flow.topic)[1]]


def test_latest_skips_nothing_where_nothing_was_there(east: Broker, west: Broker, tmp_path: Path) -> None:
    """The window that finds nothing is the first one: what is written before the next is copied."""
    flow = mirror(east, west, tmp_path, partitions=2, settings={"consumer.auto.offset.reset": "latest"})
    first = flow.run()
    assert first.is_verified and first.copied == 0
    assert flow.run().rows == ()
    produce(east, flow.topic, records(10))
    again = flow.run()
    assert again.is_verified and again.copied == 10 and flow.assert_equal() == 10


def test_a_partition_that_is_added_is_copied_from_its_beginning(east: Broker, west: Broker, tmp_path: Path) -> None:
    from confluent_kafka.admin import NewPartitions

    from support.topics import admin

    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(10))
    flow.run()
    client = admin(east)
    for future in client.create_partitions([NewPartitions(flow.topic, 3)]).values():
        future.result()
    produce(east, flow.topic, records(30, 10), partition=2)
    assert flow.run().is_verified
    assert flow.assert_equal() == 40


def test_the_ledger_is_rebuilt_equal(east: Broker, west: Broker, tmp_path: Path) -> None:
    from airmirror.flows.prepare import catch_up_ledger, read_again

    flow = mirror(east, west, tmp_path, partitions=3)
    for start in (0, 30):
        produce(east, flow.topic, records(30, start))
        flow.run()
    catch_up_ledger(flow.opened)  # the release of the lease comes after the window's last look
    before = flow.opened.ledger.contents()
    read_again(flow.opened)
    assert flow.opened.ledger.contents() == before
    assert before["mappings"] and before["progress"] and before["control"]

"""errors.tolerance=all: what the target does not take is copied around, kept in the dead letter topic, and accounted for."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import pytest

from airmirror.flows.verification import compare_all
from airmirror.windows.results import WindowResult
from airmirror_local.brokers import Broker
from support.flows import Mirror, mirror
from support.hostile import HOUR, NOON, alter_configs, append, batch, numbered, sized
from support.topics import Record, create_topic, end_offsets, read_all

FUTURE = 2**45


def tolerant(
    east: Broker,
    west: Broker,
    directory: Path,
    config: dict[str, str],
    dead_letters: str = "",
    verify: str = "readback",
    **source: str,
) -> Mirror:
    """A flow that copies around what its remote topic, which has a configuration of its own, does not take."""
    settings = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead_letters,
        "window.verify": verify,
        "sync.topic.configs.enabled": "false",
    }
    source_config = {key.replace("_", "."): value for key, value in source.items()}
    flow = mirror(east, west, directory, settings=settings, config=source_config or None)
    flow.run()
    alter_configs(west, flow.remote_topic, config)
    return flow


@pytest.fixture
def dead_letters() -> str:
    return f"dead-letters-{uuid.uuid4().hex[:8]}"


def assert_copied_around(flow: Mirror, result: WindowResult, lost: set[int]) -> list[Record]:
    """All but ``lost`` are on the target, equal and in order, and everything is accounted for; the lost ones."""
    assert result.is_verified, [str(row.error) for row in result.rows]
    [row] = result.rows
    source = read_all(flow.source, flow.topic)[0]
    target = read_all(flow.target, flow.remote_topic)[0]
    assert [r.content for r in target] == [r.content for r in source if r.offset not in lost]
    assert (row.lost, row.copied) == (len(lost), len(source) - len(lost))
    assert row.copied + row.control + row.aborted + row.holes + row.lost == end_offsets(flow.source, flow.topic)[0]
    [compared] = compare_all(flow.opened, [])
    assert compared.error is None
    assert (compared.records, compared.lost) == (len(target), len(lost))
    again = flow.run()
    assert again.is_verified and not again.copied, "nothing is left to be copied"
    return [record for record in source if record.offset in lost]


def assert_kept(flow: Mirror, dead_letters: str, lost: list[Record]) -> None:
    """The dead letters are the lost records, with their origin."""
    kept = read_all(flow.target, dead_letters)[0]
    assert len(kept) == len(lost)
    for record, letter in zip(lost, kept, strict=True):
        assert (letter.key, letter.value, letter.timestamp) == (record.key, record.value, record.timestamp)
        assert letter.headers[: len(record.headers)] == record.headers
        origin = {
            name.removeprefix("__connect.errors."): value for name, value in letter.headers[len(record.headers) :]
        }
        assert (origin["topic"], origin["partition"]) == (flow.topic.encode(), b"0")
        assert origin["offset"] == b"%d" % record.offset
        assert origin["connector.name"] == flow.flow.name.encode()
        assert flow.remote_topic.encode() in origin["exception.message"]


@pytest.mark.parametrize("verify", ["readback", pytest.param("acks", marks=pytest.mark.long)])
def test_records_that_are_too_large(east: Broker, west: Broker, tmp_path: Path, dead_letters: str, verify: str) -> None:
    flow = tolerant(
        east=east,
        west=west,
        directory=tmp_path,
        config={"max.message.bytes": "5000"},
        dead_letters=dead_letters,
        verify=verify,
        max_message_bytes="2000000",
    )
    poison = Record(b"x" * 9000, b"key", (("h", None), ("größe", b"\0\xff")), NOON)
    among = [*numbered(20), poison, *numbered(20), poison]
    append(east, flow.topic, [batch(numbered(3)), sized(6000), batch(among), sized(1_900_000), batch(numbered(2))])
    lost = assert_copied_around(flow, flow.run(), {3, 24, 45, 46})
    assert_kept(flow, dead_letters, lost)


def test_records_that_are_too_large_only_as_the_target_compresses_them(
    east: Broker, west: Broker, tmp_path: Path, dead_letters: str
) -> None:
    config = {"compression.type": "uncompressed", "max.message.bytes": "5000"}
    flow = tolerant(east, west, tmp_path, config, dead_letters)
    zeros = Record(b"\0" * 6000, b"k", (), NOON)
    append(east, flow.topic, [batch(numbered(3)), batch([zeros, *numbered(2), zeros], "gzip"), batch(numbered(3))])
    assert_kept(flow, dead_letters, assert_copied_around(flow, flow.run(), {3, 6}))


@pytest.mark.parametrize("verify", [pytest.param("readback", marks=pytest.mark.long), "acks"])
def test_records_of_another_time_than_the_target_takes(
    east: Broker, west: Broker, tmp_path: Path, dead_letters: str, verify: str
) -> None:
    limits = {"message.timestamp.before.max.ms": str(HOUR), "message.timestamp.after.max.ms": str(HOUR)}
    flow = tolerant(
        east=east,
        west=west,
        directory=tmp_path,
        config=limits,
        dead_letters=dead_letters,
        verify=verify,
        message_timestamp_after_max_ms=str(2**63 - 1),
    )
    now = int(time.time() * 1000)
    old, late, fresh = numbered(2), numbered(1, time=FUTURE), numbered(5, time=now)
    append(east, flow.topic, [batch(fresh), batch([*fresh, *old, *fresh, *late], "lz4"), batch(fresh), batch(old)])
    lost = assert_copied_around(flow, flow.run(), {10, 11, 17, 23, 24})
    assert_kept(flow, dead_letters, lost)


def test_each_refusal_leaves_what_came_before_it_committed(east: Broker, west: Broker, tmp_path: Path) -> None:
    """It ends the transaction of the whole slot: where they are frequent, no partition of it got anywhere in any window."""
    flow = tolerant(east, west, tmp_path, {"message.timestamp.before.max.ms": str(HOUR)})
    fresh, old = numbered(5, time=int(time.time() * 1000)), numbered(1)
    append(east, flow.topic, [batch([*fresh, *old])] * 12)
    assert_copied_around(flow, flow.run(), set(range(5, 72, 6)))
    assert len(list(flow.opened.ledger.mappings(flow.topic, 0))) >= 12


def test_records_without_a_key_for_a_compacted_target(
    east: Broker, west: Broker, tmp_path: Path, dead_letters: str
) -> None:
    flow = tolerant(east, west, tmp_path, {"cleanup.policy": "compact"}, dead_letters)
    without = Record(b"v" * 200, None, (), NOON)
    append(east, flow.topic, [batch(numbered(3)), batch([without, *numbered(3, 3), without], "gzip")])
    assert_kept(flow, dead_letters, assert_copied_around(flow, flow.run(), {3, 7}))


def test_without_a_dead_letter_topic_they_are_counted_only(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = tolerant(east, west, tmp_path, {"max.message.bytes": "5000"})
    append(east, flow.topic, [sized(6000), batch(numbered(3)), sized(6000)])
    assert_copied_around(flow, flow.run(), {0, 4})


def test_what_a_dead_letter_topic_does_not_take_either(
    east: Broker, west: Broker, tmp_path: Path, dead_letters: str
) -> None:
    """One that is too large for it is not tried; one that it refuses is left out by the next attempt."""
    create_topic(west, dead_letters, 2, {"max.message.bytes": "20000", "message.timestamp.before.max.ms": str(HOUR)})
    flow = tolerant(east, west, tmp_path, {"max.message.bytes": "5000"}, dead_letters)
    now = int(time.time() * 1000)
    fits = sized(9000, time=now)
    append(east, flow.topic, [batch(numbered(3)), sized(30_000, time=now), fits, sized(9000), batch(numbered(1))])
    lost = assert_copied_around(flow, flow.run(), {3, 4, 5})
    assert_kept(flow, dead_letters, lost[1:2])


def test_a_log_of_nothing_else(east: Broker, west: Broker, tmp_path: Path, dead_letters: str) -> None:
    flow = tolerant(east, west, tmp_path, {"max.message.bytes": "5000"}, dead_letters)
    append(east, flow.topic, [sized(6000), sized(9000, "gzip")])
    assert_kept(flow, dead_letters, assert_copied_around(flow, flow.run(), {0, 1}))

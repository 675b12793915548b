"""Targets that take records otherwise than they came: compressed anew, in smaller batches, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from airmirror.errors import AirmirrorError
from airmirror.slot.refusals import RecordTooLarge, WriteRefused
from airmirror.windows.results import WindowResult
from airmirror_local.brokers import Broker
from support.flows import Mirror, mirror
from support.hostile import CODECS, HOUR, LIMIT, NOON, alter_configs, append, batch, numbered, sized
from support.topics import Record, end_offsets, read_all


def to(
    east: Broker,
    west: Broker,
    directory: Path,
    config: dict[str, str],
    source: dict[str, str] | None = None,
    **settings: str,
) -> Mirror:
    """A flow whose remote topic is there, with a configuration of its own; ``source``: that of the topic on the source."""
    own = {key.replace("_", "."): value for key, value in settings.items()}
    flow = mirror(east, west, directory, config=source, settings=own | {"sync.topic.configs.enabled": "false"})
    flow.run()
    alter_configs(west, flow.remote_topic, config)
    return flow


def errors(result: WindowResult) -> list[AirmirrorError | None]:
    return [row.error for row in result.rows]


@pytest.mark.parametrize(
    ("codec", "verify"),
    [
        ("zstd", "acks"),
        ("uncompressed", "readback"),
        pytest.param("zstd", "readback", marks=pytest.mark.long),
        pytest.param("gzip", "readback", marks=pytest.mark.long),
    ],
)
def test_a_target_that_compresses_otherwise(
    east: Broker, west: Broker, tmp_path: Path, codec: str, verify: str
) -> None:
    flow = to(east, west, tmp_path, {"compression.type": codec}, window_verify=verify)
    for own in CODECS:
        append(east, flow.topic, [batch(numbered(500), own), batch(numbered(1), own)])
    result = flow.run()
    assert result.is_verified, [str(row.error) for row in result.rows]
    assert flow.assert_equal() == result.copied == 5 * 501


@pytest.mark.parametrize("verify", ["readback", pytest.param("acks", marks=pytest.mark.long)])
def test_batches_that_are_too_large_only_without_their_compression(
    east: Broker, west: Broker, tmp_path: Path, verify: str
) -> None:
    """The broker of the target measures what it stores, not what it is sent."""
    flow = to(east, west, tmp_path, {"compression.type": "uncompressed"}, window_verify=verify)
    large = batch(numbered(1_500, size=850), "zstd")
    append(east, flow.topic, [batch(numbered(3)), large, batch(numbered(3), "lz4"), large])
    result = flow.run()
    assert result.is_verified, [str(row.error) for row in result.rows]
    assert flow.assert_equal() == 3_006


def test_a_record_that_is_too_large_only_without_its_compression(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = to(east, west, tmp_path, {"compression.type": "uncompressed", "max.message.bytes": "5000"})
    append(
        east,
        flow.topic,
        [batch(numbered(3)), batch([Record(b"\0" * 6000, b"k", (), NOON)], "gzip"), batch(numbered(3))],
    )
    result = flow.run()
    [error] = errors(result)
    assert isinstance(error, WriteRefused)
    assert "offsets 3 to 3" in str(error) and "max.message.bytes" in str(error)
    assert sum(map(len, read_all(west, flow.remote_topic).values())) == 3
    alter_configs(west, flow.remote_topic, {"max.message.bytes": "10000"})
    assert flow.run().is_verified
    assert flow.assert_equal() == 7


@pytest.mark.parametrize("codec", ["snappy", pytest.param("none", marks=pytest.mark.long)])
def test_a_target_with_smaller_batches_that_compresses_otherwise(
    east: Broker, west: Broker, tmp_path: Path, codec: str
) -> None:
    flow = to(east, west, tmp_path, {"compression.type": "zstd", "max.message.bytes": "2000"})
    append(east, flow.topic, [batch(numbered(300), codec), sized(1900), batch(numbered(2), codec)])
    result = flow.run()
    assert result.is_verified, [str(row.error) for row in result.rows]
    assert flow.assert_equal() == 303


def test_a_record_that_is_too_large(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = to(east, west, tmp_path, {"max.message.bytes": str(LIMIT - 1)})
    append(east, flow.topic, [sized(LIMIT - 1), sized(LIMIT), batch(numbered(2))])
    result = flow.run()
    [error] = errors(result)
    assert isinstance(error, RecordTooLarge)
    assert (error.offset, error.size, error.limit) == (1, LIMIT, LIMIT - 1)
    assert sum(map(len, read_all(west, flow.remote_topic).values())) == 1
    alter_configs(west, flow.remote_topic, {"max.message.bytes": str(LIMIT)})
    assert flow.run().is_verified
    assert flow.assert_equal() == 4


@pytest.mark.parametrize("verify", ["readback", pytest.param("acks", marks=pytest.mark.long)])
def test_a_target_that_refuses_old_records(east: Broker, west: Broker, tmp_path: Path, verify: str) -> None:
    flow = to(east, west, tmp_path, {"message.timestamp.before.max.ms": str(HOUR)}, window_verify=verify)
    fresh = [Record(record.value, record.key, (), -1) for record in numbered(4)]  # without a time, nothing is too old
    append(east, flow.topic, [batch(fresh), batch(numbered(5, size=200), "lz4"), batch(fresh)])
    result = flow.run()
    [error] = errors(result)
    assert isinstance(error, WriteRefused) and not error.transient
    said = str(error)
    assert "offsets 4 to 8" in said and "message.timestamp.before.max.ms" in said and flow.remote_topic in said
    assert sum(map(len, read_all(west, flow.remote_topic).values())) == 4, "what comes before is copied"
    assert end_offsets(east, flow.topic)[0] - 4 == result.rows[0].lag
    alter_configs(west, flow.remote_topic, {"message.timestamp.before.max.ms": str(2**63 - 1)})
    assert flow.run().is_verified, "the way out that the error names"
    assert flow.assert_equal() == 13


def test_a_target_that_refuses_records_of_the_future(east: Broker, west: Broker, tmp_path: Path) -> None:
    key = "message.timestamp.after.max.ms"  # from its creation on: a broker applies a change later than it shows it
    flow = to(east, west, tmp_path, {key: str(HOUR)}, source={key: str(2**63 - 1)})
    append(east, flow.topic, [batch(numbered(3)), batch(numbered(2, size=200, time=2**45), "lz4"), batch(numbered(3))])
    [error] = errors(flow.run())
    assert isinstance(error, WriteRefused)
    assert "offsets 3 to 4" in str(error) and "message.timestamp.after.max.ms" in str(error)


def test_a_compacted_target_that_refuses_records_without_a_key(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = to(east, west, tmp_path, {"cleanup.policy": "compact"})
    append(east, flow.topic, [batch(numbered(3)), batch([Record(b"v" * 200, None, (), NOON)], "gzip")])
    [error] = errors(flow.run())
    assert isinstance(error, WriteRefused)
    assert "offsets 3 to 3" in str(error) and "key" in str(error)

"""A log of message formats 0, 1 and 2, written into a broker's mapping file: no broker of today takes such messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from support.flows import mirror
from support.hostile import NOON, append, batch, numbered
from support.old_formats import Message, compressed, plain
from support.topics import create_topic, end_offsets, read_all

APPENDED = NOON + 77


def messages(count: int, start: int = 0) -> list[Message]:
    values = [b"v%d" % number * 20 for number in range(start, start + count)]
    return [
        Message(
            None if number % 3 == 0 else b"k%d" % number, None if number % 5 == 4 else value, NOON + number * 7 % 10
        )
        for number, value in enumerate(values, start)
    ]


def old_log() -> tuple[bytes, list[tuple[bytes | None, bytes | None, int]]]:
    """The bytes of a mapping, and (key, value, timestamp) of each of its records."""
    log, rows = b"", []
    for magic in (0, 1):
        for codec in (0, 1, 2, 3):
            group = messages(7, len(rows))
            log += plain(group, magic, len(rows)) if codec == 0 else compressed(group, magic, codec, len(rows))
            rows += [(message.key, message.value, -1 if magic == 0 else message.timestamp) for message in group]
    group = messages(5, len(rows))
    log += compressed(group, 1, 1, len(rows), append_time=APPENDED)
    rows += [(message.key, message.value, APPENDED) for message in group]
    return log, rows


@pytest.fixture
def old(tmp_path: Path) -> Broker:
    """A broker of the test's own, to be stopped and started."""
    broker = start_broker(tmp_path, "old", IMPATIENT)
    yield broker
    broker.kill()


def test_every_record_of_an_old_log_is_copied(old: Broker, west: Broker, tmp_path: Path) -> None:
    name = create_topic(old, "orders")
    log, rows = old_log()
    old.stop()
    [mapping] = (old.directory / "data").glob(f"{name}-0/*.log")
    mapping.write_bytes(log)
    for index in mapping.parent.glob("*index"):
        index.unlink()
    old.restart()
    assert end_offsets(old, name) == {0: len(rows)}
    append(old, name, [batch(numbered(5), "lz4")])  # the topic resumes in format 2
    rows += [(record.key, record.value, record.timestamp) for record in numbered(5)]
    for verify in ("readback", "acks"):
        flow = mirror(old, west, tmp_path, topic=name, settings={"window.verify": verify})
        result = flow.run()
        assert result.is_verified and result.copied == len(rows), [str(row.error) for row in result.rows]
        assert [(r.key, r.value, r.timestamp) for r in read_all(west, flow.remote_topic)[0]] == rows

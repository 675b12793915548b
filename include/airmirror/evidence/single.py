"""One record of a log, by its offset, to be looked at. Nothing is decided from it."""

from __future__ import annotations

from dataclasses import dataclass

from airmirror.clusters.protocol.errors import FetchFailed
from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience, read_batches
from airmirror.clusters.protocol.routes import Routes
from airmirror.partitions import TopicPartition
from airmirror.windows.cursor import decoded
from airmirror.wire.headers import headers_of, parts_of
from airmirror.wire.primitives import MalformedRecord

PATIENCE = 5.0


@dataclass(frozen=True)
class Single:
    """A record; ``timestamp`` in epoch milliseconds, ``is_aborted``: of a transaction that was aborted."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]
    is_aborted: bool


@dataclass(frozen=True)
class LogBounds:
    """A log's first offset and the one after its last stable one."""

    start: int
    end: int


def bounds(routes: Routes, partition: TopicPartition) -> LogBounds:
    """The offsets that can be asked for. Raises BrokerUnreachable, TopicNotFound, FetchFailed."""
    routes.refresh([partition.topic])
    wanted = [partition]
    start = offsets_with_patience(routes, wanted, EARLIEST, patience=PATIENCE)[partition]
    end = offsets_with_patience(routes, wanted, LATEST, read_committed=True, patience=PATIENCE)[partition]
    return LogBounds(start, end)


def first_from(routes: Routes, partition: TopicPartition, time_ms: int) -> int:
    """The offset of the first record that is not earlier than a time; -1: there is none. To be called after ``bounds``."""
    return offsets_with_patience(routes, [partition], time_ms, patience=PATIENCE)[partition]


def single(routes: Routes, partition: TopicPartition, offset: int) -> Single | None:
    """The record at an offset within ``bounds``; None: none is there (a control record, or a hole).

    Raises FetchFailed where its bytes make no sense, RecordsWithheld, LastStableOffsetStuck.
    """
    for buffer, batches in read_batches(
        routes, partition, offset, offset + 1, read_committed=True, patience=PATIENCE, max_bytes=1 << 20
    ):
        for batch, is_aborted in batches:
            if batch.is_control or not batch.count:
                continue
            for records in decoded(
                routes=routes, partition=partition, buffer=buffer, batches=[batch], start=offset, end=offset + 1
            ):
                for start, end, time in zip(records.starts, records.ends, records.timestamps, strict=True):
                    body = records.data[start:end].tobytes()
                    try:
                        key, value, tail = parts_of(body)
                        headers = tuple(headers_of(tail))
                    except MalformedRecord as error:
                        raise FetchFailed(routes.alias, partition, str(error), offset) from error
                    return Single(offset, int(time), key, value, headers, is_aborted)
    return None


def differences(one: Single, other: Single) -> tuple[str, ...]:
    """Names of the parts in which a copy differs from its record."""
    return tuple(
        name for name in ("key", "value", "headers", "timestamp") if getattr(one, name) != getattr(other, name)
    )

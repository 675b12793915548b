"""Telling aborted batches where compaction has left less than was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from airmirror.clusters.protocol import log
from airmirror.clusters.protocol.errors import FetchFailed
from airmirror.clusters.protocol.routes import Routes
from airmirror.partitions import TopicPartition
from airmirror.wire.aborted import AbortedFilter
from airmirror.wire.batch import CONTROL, TRANSACTIONAL, Batch
from airmirror.wire.requests import AbortedTransaction, Fetched
from wire.test_aborted import ABORT, data, end


def batch(offset: int, producer: int, *, count: int = 1, control: bool = False) -> Batch:
    attributes = TRANSACTIONAL | (CONTROL if control else 0)
    return Batch(
        position=0,
        size=61,
        base_offset=offset,
        leader_epoch=0,
        checksum=0,
        attributes=attributes,
        last_offset_delta=0,
        base_timestamp=-1,
        max_timestamp=-1,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=-1,
        count=count,
    )


def test_an_empty_control_batch_ends_nothing() -> None:
    """The cleaner keeps a producer's last batch without its records; there is no marker in it to be read."""
    aborted = AbortedFilter()
    nothing = memoryview(bytes(61))
    aborted.begin([AbortedTransaction(7, 0)], nothing, 0, 0, 0)
    assert aborted.is_aborted(nothing, batch(0, 7))
    assert not aborted.is_aborted(nothing, batch(1, 7, count=0, control=True))
    assert aborted.is_aborted(nothing, batch(2, 7))
    assert not aborted.is_aborted(nothing, batch(3, 8))


def test_a_response_names_everything_that_is_aborted_in_it() -> None:
    """What was open at the end of a response, and is not named by the next, ended in what compaction has taken away."""
    aborted = AbortedFilter()
    nothing = memoryview(bytes(61))
    aborted.begin([AbortedTransaction(7, 0)], nothing, 0, 0, 0)
    assert aborted.is_aborted(nothing, batch(0, 7))
    aborted.begin([AbortedTransaction(7, 0)], nothing, 0, 0, 0)
    assert aborted.is_aborted(nothing, batch(1, 7)), "still open"
    aborted.begin([], nothing, 0, 0, 0)
    assert not aborted.is_aborted(nothing, batch(2, 7))


def read(monkeypatch: pytest.MonkeyPatch, answers: Mapping[int, bytes]) -> Iterator[list[tuple[int, bool]]]:
    """Offsets, and whether they are aborted, as a reader gets them in answers without a list; elsewhere the log is purged."""

    def fetched(position: int, **_: object) -> tuple[memoryview, Fetched]:
        found = answers.get(position, b"")
        begin = min(offset for offset in answers if offset >= position)
        error = 0 if found else log.OFFSET_OUT_OF_RANGE
        return memoryview(found), Fetched(error, 9, 9, begin, aborted=(), start=0, end=len(found))

    monkeypatch.setattr(log, "_fetch_one", fetched)
    routes = cast(Routes, SimpleNamespace(alias="east"))
    for _, batches in log.read_batches(routes, TopicPartition("log", 0), 0, max(answers) + 1, read_committed=True):
        yield [(each.base_offset, aborted) for each, aborted in batches]


def test_a_reader_that_was_given_records_of_an_aborted_transaction_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has handed them on: what reads them must not go on."""
    reading = read(monkeypatch, {0: data(0, 7), 1: end(1, 7, ABORT)})
    assert next(reading) == [(0, False)]
    with pytest.raises(
        FetchFailed, match="log-0 can't be read from offset 0: its leader did not name a transaction that is"
    ):
        next(reading)


def test_a_reader_forgets_what_came_before_the_logs_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = read(monkeypatch, {0: data(0, 7), 5: data(5, 7) + end(6, 7, ABORT)})
    assert list(reading) == [[(0, False)], [(5, True)]]

"""Telling aborted batches where compaction has left less than was written."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from airmirror.clusters.protocol import log
from airmirror.clusters.protocol.errors import FetchFailed
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
    aborted.begin([AbortedTransaction(7, 0)], nothing, 0, 0)
    assert aborted.is_aborted(nothing, batch(0, 7))
    assert not aborted.is_aborted(nothing, batch(1, 7, count=0, control=True))
    assert aborted.is_aborted(nothing, batch(2, 7))
    assert not aborted.is_aborted(nothing, batch(3, 8))


def test_a_response_names_everything_that_is_aborted_in_it() -> None:
    """What was open at the end of a response, and is not named by the next, ended in what compaction has taken away."""
    aborted = AbortedFilter()
    nothing = memoryview(bytes(61))
    aborted.begin([AbortedTransaction(7, 0)], nothing, 0, 0)
    assert aborted.is_aborted(nothing, batch(0, 7))
    aborted.begin([AbortedTransaction(7, 0)], nothing, 0, 0)
    assert aborted.is_aborted(nothing, batch(1, 7)), "still open"
    aborted.begin([], nothing, 0, 0)
    assert not aborted.is_aborted(nothing, batch(2, 7))


def test_a_reader_that_was_given_records_of_an_aborted_transaction_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has handed them on: what reads them must not go on."""
    batches = [data(0, 7), end(1, 7, ABORT)]

    def fetched(position: int, **_: object) -> tuple[memoryview, Fetched]:
        found = batches[position]
        return memoryview(found), Fetched(0, 2, 2, 0, aborted=(), start=0, end=len(found))

    monkeypatch.setattr(log, "_fetch_one", fetched)
    reading = log.read_batches(SimpleNamespace(alias="east"), TopicPartition("log", 0), 0, 2, read_committed=True)  # type: ignore[arg-type]
    assert [aborted for _, aborted in next(reading)[1]] == [False]
    with pytest.raises(
        FetchFailed, match="log-0 can't be read from offset 0: its leader did not name a transaction that is"
    ):
        next(reading)

"""Telling aborted batches where compaction has left less than was written."""

from __future__ import annotations

from airmirror.wire.aborted import AbortedFilter
from airmirror.wire.batch import CONTROL, TRANSACTIONAL, Batch
from airmirror.wire.requests import AbortedTransaction


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

"""What abort markers in an answer say, whatever its list of aborted transactions says."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airmirror.wire import aborted
from airmirror.wire.aborted import AbortedFilter, ended
from airmirror.wire.batch import CONTROL, TRANSACTIONAL
from airmirror.wire.batches import parse
from airmirror.wire.requests import AbortedTransaction
from support.hostile import NOON, batch
from support.topics import Record
from wire.test_small import QUICKLY, logs, marker, restamped

ABORT, COMMIT = 0, 1


def data(offset: int, producer: int, *, flags: int = TRANSACTIONAL) -> bytes:
    return restamped(batch([Record(b"v", None, (), NOON)]), offset, flags=flags, producer=producer)


def end(offset: int, producer: int, kind: int, **more: int) -> bytes:
    return restamped(marker(kind), offset, flags=TRANSACTIONAL | CONTROL, producer=producer, **more)


LOG = [
    data(0, 1),
    data(1, 2),
    data(2, 1, flags=0),  # not of the transaction
    end(3, 1, ABORT),
    data(4, 1),
    end(5, 2, COMMIT),
    data(6, 2),
    end(7, 1, COMMIT),
    end(8, 1, ABORT),  # of a transaction without a record here
    data(9, 3),
    end(10, 3, COMMIT, count=0),  # compaction has left nothing of it
    end(11, 3, ABORT),
    data(12, 1),
    end(13, 2, ABORT),
]  # and the transaction at 12 has not ended
ABORTED = [AbortedTransaction(1, 0), AbortedTransaction(2, 6)]


@pytest.mark.parametrize("few", [aborted.FEW, 0])
def test_what_a_marker_ends_is_aborted_though_the_list_leaves_it_out(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(aborted, "FEW", few)
    log = memoryview(b"before" + b"".join(LOG) + b"after")
    places = 6, len(log) - 5
    assert sorted(ended(log, *places), key=lambda each: each.first_offset) == ABORTED
    for told in ([], ABORTED[1:], ABORTED, [AbortedTransaction(1, -4), *ABORTED[1:]]):
        found = AbortedFilter()
        found.begin(told, log, *places)
        assert [each.base_offset for each in parse(log, *places) if found.is_aborted(log, each)] == [0, 6]


def test_of_more_producers_than_the_compiled_loop_takes() -> None:
    count = 3 * aborted.FEW
    log = memoryview(b"".join(data(n, n) for n in range(count)) + b"".join(end(n, n, ABORT) for n in range(count)))
    assert ended(log, 0, len(log)) == [AbortedTransaction(n, n) for n in range(count)]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=QUICKLY)
@given(compacted=st.booleans(), drawn=st.data())
def test_the_compiled_loop_finds_the_same(compacted: bool, drawn: st.DataObject) -> None:
    log = memoryview(drawn.draw(logs(compacted)).data)
    start = drawn.draw(st.integers(0, len(log)))
    for first in (0, start):
        assert aborted._ended_of_many(log, first, len(log)) == aborted._ended(log, first, len(log), len(log) + 1)

"""A slot's memory is bounded by what it has decoded, whatever few bytes become (or claim to be)."""

from __future__ import annotations

import pickle
import struct
from dataclasses import replace
from typing import Any

import crc32c
import pytest

from airmirror.slot import account, slow
from airmirror.slot.delivery import Sent
from airmirror.slot.intake import Intake
from airmirror.slot.refusals import BatchOverLimit
from airmirror.wire import small
from airmirror.wire.batch import LOG_APPEND_TIME
from airmirror.wire.batches import parse
from airmirror.wire.records import index
from airmirror.wire.requests import Produced
from support.hostile import batch, numbered
from support.intakes import FLOW, at, intake, take
from wire.test_bounds import MEGABYTE, at_most, bomb

ZSTD = 4


def stamped(one: bytearray) -> bytearray:
    """The batch with the broker's time in place of its records': it can't be copied whole."""
    one[22] |= LOG_APPEND_TIME
    struct.pack_into(">I", one, 17, crc32c.crc32c(bytes(one[21:])))
    return one


def taking(end: int, *, largest: int = 256 * MEGABYTE, tolerance: str = "none") -> tuple[Intake, list[Any]]:
    """An intake that merges every small batch, and what it sends."""
    taker, sent = intake(end)
    flow = replace(
        FLOW,
        window=replace(FLOW.window, largest_batch_bytes=largest),
        settings=replace(FLOW.settings, errors_tolerance=tolerance),
    )
    context = replace(taker.context, slot=replace(taker.context.slot, flow=flow))
    context.merging._small = 1 << 20
    return Intake(context, replace(taker.partition, max_message_bytes=32 * MEGABYTE), end), sent


def values(sent: list[Any]) -> list[int]:
    """The sizes of all records that were sent, in order."""
    found: list[int] = []
    for outgoing in sent:
        [buffer] = [memoryview(bytes(one)) for one in outgoing.buffers]
        records = index(buffer, list(parse(buffer, 0, len(buffer))))
        found += (records.ends - records.starts).tolist()
    return found


def test_small_batches_that_become_large_are_never_merged() -> None:
    """Each is below the size that is merged, and 20 MB without its compression: they go whole, undecoded."""
    small = batch(numbered(1), codec="zstd")
    log = [at(0, small[:]), *(at(number, bomb(ZSTD, 20 * MEGABYTE)) for number in range(1, 11)), at(11, small[:])]
    taker, sent = taking(12)
    with at_most(12):
        take(taker, *log)
    assert len(sent) == 12 and taker.is_done and taker.account.holes == 0


def test_a_run_is_sent_when_so_much_of_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """LogAppendTime: every batch must be decoded. Together they are 100 MB, fetched in 4 kB."""
    monkeypatch.setattr(slow, "UNPACKED_BYTES", 8 * MEGABYTE)
    log = [at(number, stamped(bomb(ZSTD, 5 * MEGABYTE))) for number in range(20)]
    taker, sent = taking(20)
    with at_most(40):
        take(taker, *log)
    assert len(values(sent)) == 20 and taker.account.end == 20


def test_a_batch_over_the_limit_stops_its_partition_with_its_offset() -> None:
    log = [stamped(batch(numbered(10))), at(10, stamped(bomb(ZSTD, 3 * MEGABYTE))), at(11, stamped(batch(numbered(5))))]
    taker, _ = taking(16, largest=2 * MEGABYTE)
    with pytest.raises(
        BatchOverLimit, match=r"offset 10 .*2097152 bytes.*east->west\.window\.largest\.batch\.bytes"
    ) as caught:
        take(taker, *log)
    assert caught.value.first_bad == 10 and not caught.value.transient
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    taker, sent = taking(10, largest=2 * MEGABYTE)  # as the next attempt does: up to there
    take(taker, *log)
    assert len(values(sent)) == 10 and taker.is_done


def test_a_batch_over_the_limit_is_copied_around_where_that_is_tolerated() -> None:
    log = [stamped(batch(numbered(10))), at(10, stamped(bomb(ZSTD, 3 * MEGABYTE))), at(11, stamped(batch(numbered(5))))]
    taker, sent = taking(16, largest=2 * MEGABYTE, tolerance="all")
    take(taker, *log)
    assert len(values(sent)) == 15 and taker.is_done
    assert (taker.account.lost, taker.account.holes, taker.account.end) == (1, 0, 16)


def test_one_fetch_of_many_runs_becomes_several_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compacted topic of tiny records: a record of the mapping topic has no room for all runs of a fetch."""
    monkeypatch.setattr(account, "MOST_RANGES", 500)
    monkeypatch.setattr(small, "RUN_RECORDS", 300)
    log = [at(200 * number, batch(numbered(100), offsets=range(0, 200, 2))) for number in range(30)]
    taker, sent = taking(5999)
    taker.partition = taker.delivery.partition = replace(taker.partition, compacted=True)
    transactions = []
    while not taker.is_done:
        take(taker, *log)
        found = taker.account
        assert found.copied + found.holes <= found.end - found.start, "what is not taken is not counted"
        transactions.append((found.runs, found.start, found.end))
        taker.committed()
    assert len(transactions) > 3 and all(500 <= runs <= 1000 for runs, _, _ in transactions[:-1])
    assert [start for _, start, _ in transactions] == [0, *(end for _, _, end in transactions[:-1])]
    assert len(values(sent)) == 3000


def test_batches_that_follow_each_other_are_one_run() -> None:
    taker, _ = taking(400)
    take(taker, *(at(100 * number, batch(numbered(100))) for number in range(4)))
    assert taker.account.runs == 1


def test_a_damaged_batch_in_a_run_is_named_itself() -> None:
    """Those before it are copied by the next attempt."""
    one = bomb(ZSTD, 100)
    one[80] ^= 0xFF  # its compression makes no sense, its checksum is right
    log = [
        stamped(batch(numbered(10), codec="zstd")),
        at(10, stamped(one)),
        at(11, stamped(batch(numbered(5), codec="zstd"))),
    ]
    taker, _ = taking(16)
    with pytest.raises(Exception, match="can't be decompressed") as caught:
        take(taker, *log)
    assert caught.value.first_bad == 10  # type: ignore[attr-defined]


class Sound(Sent):
    """A batch whose records make sense, though no payload is made up for it."""

    def _damage(self) -> str:
        return ""


def sent_with(runs: list[tuple[int, int]]) -> Sent:
    taker, _ = intake(1)
    return Sound(
        delivery=taker.delivery,
        account=taker.account,
        runs=runs,
        count=sum(count for _, count in runs),
        attributes=0,
        base_timestamp=0,
        max_timestamp=0,
        payload=memoryview(b""),
        digest=b"",
    )


def test_a_refused_batch_is_not_expanded_by_its_count() -> None:
    one = sent_with([(100, 2**31 - 1)])
    with at_most(1):
        error: Any = one.refused(Produced(87, -1, "no", (0, 5, 2**31 - 2, -1, 2**31 - 1)))
    assert error.offsets == (100, 105, 100 + 2**31 - 2)
    assert (error.first, error.last, error.first_bad) == (100, 100 + 2**31 - 2, 100)


def test_the_offsets_of_refused_records_across_holes() -> None:
    runs = [(5, 3), (10, 1), (20, 4)]
    offsets = [5, 6, 7, 10, 20, 21, 22, 23]
    error: Any = sent_with(runs).refused(Produced(87, -1, None, tuple(range(-1, 9))))
    assert list(error.offsets) == offsets and (error.first, error.last) == (5, 23)
    error = sent_with([(7, 1)]).refused(Produced(10, -1, None))
    assert error.offsets == (7,), "a batch of one record is about that record"

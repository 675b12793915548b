"""The index reads what is new in a flow's internal topics, without brokers: of two logs that tests write."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from airmirror.ledger import FlowLedger, Ledger, LedgerBegunAnew
from airmirror.ledger.scanning import HOUR_MS, READ
from airmirror.partitions import Entry, TopicPartition
from airmirror.windows import index
from airmirror.wire.plain import LogRecord
from support.ledgers import MAPPINGS, ORDERS_AGAIN, OTHER_TOPIC_ID, PROGRESS, TOPIC_ID, mapping, verified, written


@dataclass
class Log:
    """The mapping topic, beside an empty ``mm2-offsets``; ``starts``: the offsets that it was read from."""

    entries: list[Entry] = field(default_factory=list)
    end: int = 0
    starts: list[int] = field(default_factory=list)

    def read(
        self, _routes: object, partition: TopicPartition, start: int, end: int, **_: object
    ) -> Iterator[LogRecord]:
        assert partition == TopicPartition(MAPPINGS, 0)
        self.starts.append(start)
        for each in self.entries:
            if start <= each.offset < end:
                yield LogRecord(each.offset, each.timestamp, each.key, each.value)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    found = Log()
    ends = lambda _routes, keys, _at: {key: found.end if key.topic == MAPPINGS else 0 for key in keys}  # noqa: E731
    monkeypatch.setattr(index, "offsets_with_patience", ends)
    monkeypatch.setattr(index, "epoch_ends", lambda _routes, _asked: {})
    monkeypatch.setattr(index, "read_records", found.read)
    return found


def catch_up(flow: FlowLedger) -> None:
    routes = SimpleNamespace(
        refresh=lambda _names: None,
        keys=lambda names: [TopicPartition(name, 0) for name in names],
        topic_ids={MAPPINGS: TOPIC_ID, PROGRESS: OTHER_TOPIC_ID},
    )
    index.catch_up(cast(Any, routes), flow, "east")


@pytest.fixture
def ledgers() -> Iterator[list[FlowLedger]]:
    """Two of one flow, which know nothing."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Ledger("sqlite://"))).flow("east->west") for _ in range(2)]


@pytest.mark.parametrize("hours", [25, 23])
def test_a_ledger_that_slept_longer_than_tombstones_stay_knows_nothing_that_was_deleted(
    log: Log, ledgers: list[FlowLedger], hours: int
) -> None:
    """Somebody has begun a partition again meanwhile. Before that the tombstones are there, and the tail is enough."""
    slept, rebuilt = ledgers
    log.entries, log.end = [written(0, mapping(0, 10)), written(1, mapping(10, 20)), written(2, verified(19))], 3
    catch_up(slept)
    slept.note_begun(READ, int(time.time() * 1000) - hours * HOUR_MS)
    catch_up(slept)
    assert log.starts == [0], "nothing is new: nothing is read"
    assert (slept.last_begun(READ) or 0) > time.time() * 1000 - HOUR_MS, "and that is known from now on"
    again = [mapping(0, 5, topic_id=ORDERS_AGAIN), verified(4, topic_id=ORDERS_AGAIN)]
    log.entries, log.end = [written(offset, each) for offset, each in enumerate(again, 6)], 8
    slept.note_begun(READ, int(time.time() * 1000) - hours * HOUR_MS)
    catch_up(slept)
    assert log.starts == ([0, 0] if hours > 24 else [0, 3])
    if hours > 24:
        catch_up(rebuilt)
        assert slept.contents() == rebuilt.contents() and len(slept.contents()["mappings"]) == 1
    log.entries.append(written(8, mapping(5, 9, topic_id=ORDERS_AGAIN)))
    log.end = 9
    catch_up(slept)
    assert log.starts[-1] == 8, "it is awake"


def test_what_others_have_read_since_it_slept_is_not_forgotten(log: Log, ledgers: list[FlowLedger]) -> None:
    """Of two processes that find the ledger asleep one forgets: else each would take away what the other one reads."""
    now, (slept, new) = int(time.time() * 1000), ledgers
    slept.note_begun(READ, now - 25 * HOUR_MS)
    assert slept.forget_slept([MAPPINGS, PROGRESS], now) and not slept.forget_slept([MAPPINGS, PROGRESS], now)
    assert not new.forget_slept([MAPPINGS, PROGRESS], now) and new.last_begun(READ) == now


def test_an_index_that_others_begin_anew_is_named_by_its_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its source's alias is no flow: the command that the error names would find none."""
    monkeypatch.setattr(index, "_read_tails", lambda *_: {MAPPINGS: (TOPIC_ID, {0: 5})})
    behind = SimpleNamespace(flow="east->west", all_scanned=lambda: {MAPPINGS: (TOPIC_ID, {0: 4})})
    with pytest.raises(LedgerBegunAnew, match="airmirror ledger rebuild --flow 'east->west'"):
        index.catch_up(cast(Any, None), cast(Any, behind), "east")

"""The numbers that are shown: each verified mapping counts once, whenever it is counted, pruned or verified."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from airmirror.ledger import FlowLedger, Ledger
from airmirror.ledger.metrics import Standing
from ledger.test_ledger import OTHER, entries, load, mapping, verified


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    with closing(Ledger(ledger_url)) as opened:
        yield opened


def replicates(flow: FlowLedger, *partitions: int) -> None:
    flow.note_standings([Standing("orders", number, "east.orders", 0, 0) for number in partitions])


def shown(ledger: Ledger) -> dict[tuple[str, int], tuple[int, int]]:
    return {(row.topic, row.partition): (row.records, row.bytes) for row in ledger.partition_metrics()}


@pytest.mark.parametrize("seed", range(3))
def test_each_verified_mapping_counts_once(ledger: Ledger, seed: int) -> None:
    chance = random.Random(seed)
    flow = ledger.flow("a->b")
    log: list[object] = []
    ends, passed, first = [0, 0, 0], [0, 0, 0], [0, 0, 0]
    replicates(flow, 0, 1, 2)
    for _ in range(60):
        number = chance.randrange(3)
        step = chance.randrange(5)
        if step <= 1:
            length = chance.randrange(1, 50)
            log.append(mapping(ends[number], ends[number] + length, partition=number))
            ends[number] += length
        elif step == 2 and ends[number]:
            passed[number] = ends[number]
            log.append(verified(ends[number] - 1, partition=number))
        elif step == 3:  # what was verified and counted is pruned
            flow.count_verified()
            for old in list(flow.mappings("orders", number)):
                if old.source_end <= passed[number]:
                    log.append((old,))
                    first[number] = old.source_end
        else:
            flow.count_verified()
        load(flow, entries(*log))
    flow.count_verified()
    flow.count_verified()
    expected = {("orders", n): (passed[n], 10 * passed[n]) for n in range(3)}
    assert shown(ledger) == expected
    # A ledger that is made anew counts what the topic still has.
    flow.forget()
    replicates(flow, 0, 1, 2)
    load(flow, entries(*log))
    flow.count_verified()
    left = {("orders", n): (passed[n] - first[n], 10 * (passed[n] - first[n])) for n in range(3)}
    assert shown(ledger) == left


def test_the_newest_record_is_known_before_it_is_verified(ledger: Ledger) -> None:
    flow = ledger.flow("a->b")
    replicates(flow, 0)
    load(flow, entries(mapping(0, 10)))
    flow.count_verified()
    (row,) = ledger.partition_metrics()
    assert (row.records, row.newest_ms, row.latency_ms, row.verified_ms) == (0, 5, 995, -1)
    load(flow, entries(mapping(0, 10), verified(9)))
    flow.count_verified()
    (row,) = ledger.partition_metrics()
    assert (row.records, row.newest_ms, row.latency_ms, row.verified_ms) == (10, 5, 995, 0)


def test_how_old_records_were_when_they_were_read_and_committed(ledger: Ledger) -> None:
    flow = ledger.flow("a->b")
    replicates(flow, 0)
    load(flow, entries(replace(mapping(0, 10), min_timestamp=2, read_ms=800)))
    flow.count_verified()
    (row,) = ledger.partition_metrics()
    assert (row.latency_ms, row.latency_most_ms, row.age_ms, row.age_most_ms) == (995, 998, 795, 798)
    # A mapping of an earlier version does not tell; a range without records leaves what is known.
    empty = replace(mapping(10, 12, window="w2"), copied=0, ranges=(), max_timestamp=-1)
    load(flow, entries(mapping(0, 10), empty))
    flow.count_verified()
    (row,) = ledger.partition_metrics()
    assert (row.latency_ms, row.latency_most_ms, row.age_ms, row.age_most_ms) == (995, 998, 795, 798)
    load(flow, entries(mapping(0, 10), empty, mapping(12, 13)))
    flow.count_verified()
    (row,) = ledger.partition_metrics()
    assert (row.latency_ms, row.latency_most_ms, row.age_ms, row.age_most_ms) == (1007, None, None, None)


def test_a_recreated_topic_is_counted_on(ledger: Ledger) -> None:
    flow = ledger.flow("a->b")
    replicates(flow, 0)
    load(flow, entries(mapping(0, 10), verified(9)))
    flow.count_verified()
    again = [mapping(0, 4, topic_id=OTHER), verified(3).__class__("orders", 0, OTHER, 3, 14, "w2", 77, 0)]
    load(flow, entries(mapping(0, 10), verified(9), *again))
    flow.count_verified()
    (row,) = ledger.partition_metrics()
    assert (row.records, row.verified_ms) == (14, 77)
    assert (row.newest_ms, row.latency_ms) == (5, 1000 - 5)  # of the newest mapping


def test_lags_of_partitions_come_and_go(ledger: Ledger) -> None:
    flow, other = ledger.flow("a->b"), ledger.flow("b->a")
    load(flow, entries(mapping(0, 10), verified(9)))
    flow.note_standings([Standing("orders", 0, "a.orders", 10, 25), Standing("orders", 1, "a.orders", 3, 3)])
    flow.count_verified()
    other.note_standings([Standing("orders", 0, "b.orders", 1, 2)])

    def lags() -> dict[tuple[str, str, int], tuple[int, int]]:
        rows = ledger.partition_metrics()
        return {(row.flow, row.topic, row.partition): (row.lag_records, row.records) for row in rows}

    assert lags() == {("a->b", "orders", 0): (15, 10), ("a->b", "orders", 1): (0, 0), ("b->a", "orders", 0): (1, 0)}
    # A partition without a leader keeps what is known of it; one that is no longer mirrored goes.
    flow.note_standings([Standing("orders", 0, "a.orders", 12, -1)])
    assert lags() == {("a->b", "orders", 0): (15, 10), ("b->a", "orders", 0): (1, 0)}
    # Whoever counts what was verified of it brings nothing back.
    flow.note_standings([])
    flow.count_verified()
    assert lags() == {("b->a", "orders", 0): (1, 0)}


def test_a_flows_own_numbers(ledger: Ledger) -> None:
    flow = ledger.flow("a->b")
    for _ in range(3):
        flow.note({("windows", "empty"): 1, ("seconds", "copy"): 0.25}, {("last", ""): 7})
    assert flow.numbers() == {("windows", "empty"): 3, ("seconds", "copy"): 0.75, ("last", ""): 7}
    assert [(row.flow, row.name) for row in ledger.flow_metrics()] == [
        ("a->b", "last"),
        ("a->b", "seconds"),
        ("a->b", "windows"),
    ]


def test_metrics_are_no_part_of_what_is_rebuilt(ledger: Ledger) -> None:
    flow: FlowLedger = ledger.flow("a->b")
    load(flow, entries(mapping(0, 10), verified(9)))
    before = flow.contents()
    replicates(flow, 0)
    flow.count_verified()
    flow.note({("windows", "empty"): 1})
    assert flow.contents() == before

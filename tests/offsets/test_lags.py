"""The age of records when they come, and the lags of consumer groups, as windows and their tasks leave them in the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from airmirror.flows.measure import measure_window
from airmirror.flows.post_window import CHECKPOINTS, do_task
from airmirror.flows.prepare import prepare
from airmirror.ledger import GroupLag, Ledger
from airmirror.windows.window import WindowOrder, run_window, verify_window
from airmirror_local.brokers import Broker
from support.flows import Mirror, in_this_process, mirror
from support.groups import commit
from support.topics import Record, create_topic, produce

FIRST = 1_700_000_000_000


def records(count: int, start: int = 0) -> list[Record]:
    """A second apart."""
    return [Record(b"v%d" % n, timestamp=FIRST + 1000 * n) for n in range(start, start + count)]


def lags(flow: Mirror, groups: str) -> dict[str, GroupLag]:
    settings = replace(
        flow.flow.settings,
        emit_checkpoints_interval_seconds=0,
        checkpoints_topic_replication_factor=1,
        groups=tuple(groups.split(",")),
    )
    opened = replace(flow.opened, flow=replace(flow.flow, settings=settings))
    do_task(opened, CHECKPOINTS, "checkpoints")
    return {row.group: row for row in Ledger(str(flow.opened.ledger.engine.url)).group_lags()}


def test_lags_of_groups(east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]) -> None:
    flow = mirror(east, west, tmp_path)
    other = create_topic(east, topic("other"), 1)
    produce(east, flow.topic, records(100), records_per_batch=10)
    flow.run()
    name = topic("group")
    inside, ahead, elsewhere = f"{name}-inside", f"{name}-ahead", f"{name}-elsewhere"
    commit(east, inside, {(flow.topic, 0): 50})
    commit(east, ahead, {(flow.topic, 0): 100})
    commit(east, elsewhere, {(other, 0): 0})
    found = lags(flow, f"{name}-.*")
    assert found.keys() == {inside, ahead}  # of what the flow replicates
    assert (found[ahead].lag, found[ahead].lag_ms) == (0, 0)
    row = found[inside]
    assert (row.topic, row.partition, row.cluster, row.position, row.lag) == (
        flow.topic,
        0,
        flow.flow.source.alias,
        50,
        50,
    )
    assert abs(row.time_ms - time.time() * 1000) < 60_000
    assert row.lag_ms is not None
    assert row.time_ms - row.lag_ms == FIRST + 49_500  # half of the way from the first record to the last one
    # What is not replicated yet has a lag, and no time that is known.
    produce(east, flow.topic, records(10, 100))
    found = lags(flow, f"{name}-.*")
    assert (found[inside].lag, found[ahead].lag, found[ahead].lag_ms) == (60, 10, None)
    numbers = flow.opened.ledger.numbers()
    assert numbers[("checkpoints", "")] == 2 and 0 < numbers[("checkpoint_seconds", "")] < 60


def test_what_a_group_would_read_again(east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]) -> None:
    """From what is verified to its position; on what is not replicated no time is known."""
    flow, group = mirror(east, west, tmp_path), topic("billing")
    produce(east, flow.topic, records(100), records_per_batch=10)
    flow.run()
    produce(east, flow.topic, records(100, 100), records_per_batch=10)
    run_window(
        flow.flow,
        flow.opened.ledger,
        prepare(flow.opened).topics,
        in_this_process,
        WindowOrder("unjudged", slots=lambda _: 1, advance=False),
    )
    for position, again, first in ((60, 0, None), (150, 50, FIRST + 100_000)):
        commit(east, group, {(flow.topic, 0): position})
        row = lags(flow, group)[group]
        assert row.again == again and row.again_ms is not None
        assert row.again_ms == (0 if first is None else row.time_ms - first)
    produce(east, flow.topic, records(10, 200))
    ledger = Ledger(str(flow.opened.ledger.engine.url))
    (found,) = ledger.read_again()
    assert (found.flow, found.group, found.records, found.ms) == (flow.flow.name, group, 50, row.again_ms)
    assert verify_window(flow.flow, flow.opened.ledger, None, window="judged", trusted=["unjudged"]).verdicts
    commit(east, group, {(flow.topic, 0): 205})
    row = lags(flow, group)[group]
    assert (row.again, row.again_ms) == (5, None)


def test_ages_of_records(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(100), records_per_batch=10)
    before = time.time() * 1000
    measure_window(flow.opened, flow.run(), lambda key: True)
    (record,) = flow.opened.ledger.mappings(flow.topic, 0)
    assert (record.min_timestamp, record.max_timestamp) == (FIRST, FIRST + 99_000)
    assert before - 1 <= record.read_ms <= record.time_ms
    (row,) = Ledger(str(flow.opened.ledger.engine.url)).partition_metrics()
    assert (row.age_ms, row.age_most_ms) == (record.read_ms - FIRST - 99_000, record.read_ms - FIRST)
    assert row.latency_most_ms == row.latency_ms + 99_000


def test_ages_of_records_that_the_source_has_stamped(east: Broker, west: Broker, tmp_path: Path) -> None:
    """All records of a batch have the time of its end, whatever its first record was made with."""
    flow = mirror(east, west, tmp_path, config={"message.timestamp.type": "LogAppendTime"})
    before = time.time() * 1000
    produce(east, flow.topic, records(100), records_per_batch=10)
    flow.run()
    (record,) = flow.opened.ledger.mappings(flow.topic, 0)
    assert before - 1 <= record.min_timestamp <= record.max_timestamp <= record.read_ms

"""What a window leaves for metrics of what it did not take: topics that are refused, and what waits for a gate."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
import sqlalchemy as sql

from airmirror.config import parse
from airmirror.flows.measure import COMPLETED, VERIFIED, WINDOWS, measure_meanwhile, measure_window
from airmirror.flows.prepare import Opened
from airmirror.ledger import Ledger
from airmirror.ledger.metrics import SEEN, Standing
from airmirror.ledger.recovery import complete_ms
from airmirror.ledger.tables import samples
from airmirror.partitions import TopicPartition
from airmirror.slot.errors import PartitionFailed
from airmirror.windows.results import WindowResult
from airmirror.windows.standing import Seen
from ledger.test_ledger import entries, load, mapping, verified

ORDERS, OTHER = (Standing(topic, 0, f"a.{topic}", 10, 10) for topic in ("orders", "other"))


@pytest.fixture
def opened() -> Iterator[Opened]:
    lines = "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true"
    configuration = parse(lines, "")
    with closing(Ledger("sqlite://")) as ledger:
        yield Opened(configuration, configuration.flow("a->b"), ledger.flow("a->b"))


def window(*standings: Standing, seen_ms: int) -> WindowResult:
    """A window that found nothing new."""
    return WindowResult(
        "a->b", "w", (), len(standings), seconds=1.0, phases={}, is_cut=False, standings=standings, seen_ms=seen_ms
    )


def complete(opened: Opened) -> dict[str, int | None]:
    seen = round(opened.ledger.numbers()[SEEN, ""] * 1000)
    return {row.topic: complete_ms(row, seen) for row in opened.ledger.partition_metrics()}


def test_what_is_known_of_a_refused_topic_grows_old(opened: Opened) -> None:
    """Its remote topic stamps records itself, or the source hides it: no window plans it, so that no row says so."""
    own, copies = opened.ledger, [mapping(0, 10), mapping(0, 10, topic="other")]
    load(own, entries(*copies, verified(9), verified(9, topic="other")))
    measure_window(opened, window(ORDERS, OTHER, seen_ms=90_000), lambda key: True)
    assert complete(opened) == {"orders": 90_000, "other": 90_000}
    passed = own.numbers()[VERIFIED, ""]
    failed = {TopicPartition("other", 0): PartitionFailed("a", "other", 0, "odd")}
    own.note_window("w0", failed, passed=lambda key: False)
    measure_window(opened, window(ORDERS, seen_ms=95_000), lambda key: True)
    assert complete(opened) == {"orders": 95_000, "other": 90_000} and own.numbers()[VERIFIED, ""] == passed
    assert [each.topic for each in own.failures()] == ["other"], "nobody tried it"
    assert own.numbers()[WINDOWS, "incomplete"] == 1
    measure_meanwhile(opened, Seen((ORDERS,), 96_000))
    assert complete(opened) == {"orders": 96_000, "other": 90_000}
    # What is excluded is the flow's no longer.
    without = replace(opened, flow=replace(opened.flow, topics_exclude=("other",)))
    measure_window(without, window(ORDERS, seen_ms=97_000), lambda key: True)
    assert complete(opened) == {"orders": 97_000} and own.numbers()[VERIFIED, ""] > passed


def test_a_window_without_news_is_not_verified_while_anything_waits_for_a_gate(opened: Opened) -> None:
    own = opened.ledger
    load(own, entries(mapping(0, 10)))
    measure_window(opened, window(ORDERS, seen_ms=90_000), lambda key: True)
    assert (COMPLETED, "") in own.numbers() and (VERIFIED, "") not in own.numbers()
    load(own, entries(mapping(0, 10), verified(9)))
    measure_window(opened, window(ORDERS, seen_ms=91_000), lambda key: True)
    assert own.numbers()[COMPLETED, ""] == own.numbers()[VERIFIED, ""]


def test_a_window_after_a_pause_has_a_sample_of_its_beginning(opened: Opened) -> None:
    """Or its throughput would be plotted over the pause too; one that follows tells when it began."""
    own, now = opened.ledger, int(time.time() * 1000)
    for begun_ms, measured in (
        (now - 1_000, lambda: measure_window(opened, window(ORDERS, seen_ms=now), lambda key: True)),
        (now - 30_000, lambda: measure_meanwhile(opened, Seen((ORDERS,), now), begun_ms=now - 30_000)),
    ):
        with own.engine.begin() as connection:
            connection.execute(samples.delete())
            connection.execute(samples.insert(), {"flow": "a->b", "time_ms": now - 600_000, "records": 7, "bytes": 70})
        measured()
        with own.engine.begin() as connection:
            times = connection.execute(sql.select(samples.c.time_ms, samples.c.records).order_by(samples.c.time_ms))
            (_, begins, _) = times.all()
        assert begins.records == 7 and begins.time_ms == pytest.approx(begun_ms, abs=20_000)

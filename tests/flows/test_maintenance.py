"""Maintenance forgets old records; replication, verification and the ledger are not disturbed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from airmirror.flows.freezing import freeze, unfreeze
from airmirror.flows.maintenance import DAY_MS, prune
from airmirror.flows.post_window import prune_if_due
from airmirror.flows.prepare import catch_up_ledger, read_again
from airmirror.ledger.pages import AUDITS, GATE, REPORTS, PagePlace, keep_page, pages_of
from airmirror.slot.errors import SlotFenced
from airmirror.windows.fence import end_window
from airmirror_local.brokers import Broker
from support.flows import mirror
from support.hostile import delete_records
from support.topics import Record, produce


def test_old_verified_mappings_and_pages_are_forgotten(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path, partitions=2)
    ledger, name = flow.opened.ledger, flow.flow.name
    for kind in (GATE, AUDITS, REPORTS, "failover-plans"):
        for place in (PagePlace(kind, name), PagePlace(kind, "east->another")):
            keep_page(ledger.engine, place, "old", "page")
    for round in range(3):
        produce(east, flow.topic, [Record(b"%d-%d" % (round, n), b"k%d" % n) for n in range(50)])
        assert flow.run().is_verified
    produce(east, flow.topic, [Record(b"late-%d" % n, b"k%d" % n) for n in range(50)])
    assert len(list(ledger.mappings(flow.topic, 0))) == 3
    now = int(time.time() * 1000)
    pruned = prune(flow.opened, 30, now_ms=now)
    assert (pruned.mappings, pruned.pages) == (0, 0)  # nothing is old yet
    later = now + 31 * DAY_MS
    pruned = prune(flow.opened, 30, now_ms=later)
    assert (pruned.mappings, pruned.pages) == (4, 3)  # the newest mapping of each partition stays
    assert [page.kind for page in pages_of(ledger.engine, name)] == [REPORTS], "evidence stays"
    assert len(pages_of(ledger.engine, "east->another")) == 4
    assert prune(flow.opened, 30, now_ms=later).mappings == 0
    assert [len(list(ledger.mappings(flow.topic, number))) for number in (0, 1)] == [1, 1]
    before = ledger.contents()
    read_again(flow.opened)
    assert ledger.contents() == before
    assert flow.run().copied == 50
    assert flow.assert_equal() == 200
    catch_up_ledger(flow.opened)
    assert not ledger.unverified()


def test_what_is_not_verified_is_kept(east: Broker, west: Broker, tmp_path: Path) -> None:
    from airmirror.flows.prepare import prepare
    from airmirror.windows.window import WindowOrder, run_window
    from support.flows import in_this_process

    flow = mirror(east, west, tmp_path)
    for round in range(3):
        produce(east, flow.topic, [Record(b"%d" % round)])
        prepared = prepare(flow.opened)
        run_window(
            flow.flow,
            flow.opened.ledger,
            prepared.topics,
            in_this_process,
            WindowOrder(f"w{round}", slots=lambda _: 1, advance=False),
        )
    later = int(time.time() * 1000) + 100 * DAY_MS
    assert prune(flow.opened, 1, now_ms=later).mappings == 0
    assert len(flow.opened.ledger.unverified()) == 3


def test_what_is_frozen_is_kept(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Also a topic alone, as a migration freezes it, and when the source has deleted its records: it may return."""
    flow = mirror(east, west, tmp_path)
    for round in range(3):
        produce(east, flow.topic, [Record(b"%d" % round)])
        assert flow.run().is_verified
    freeze(flow.opened, [flow.topic], reason="moved", by="ada")
    delete_records(east, flow.topic, 2)
    later = int(time.time() * 1000) + 100 * DAY_MS
    assert prune(flow.opened, 1, now_ms=later).mappings == 0
    unfreeze(flow.opened, [flow.topic], reason="back", by="ada")
    assert prune(flow.opened, 1, now_ms=later).mappings == 2


def test_who_slept_until_another_one_took_the_lease_deletes_nothing(east: Broker, west: Broker, tmp_path: Path) -> None:
    """What is deleted by its key may have been written again since."""
    flow = mirror(east, west, tmp_path)
    ledger = flow.opened.ledger
    for round in range(2):
        produce(east, flow.topic, [Record(b"%d" % round)])
        assert flow.run().is_verified

    def take_its_lease(phase: str) -> None:
        if phase.startswith("forgetting"):
            assert end_window(flow.flow, ledger, "prune")

    later = int(time.time() * 1000) + 100 * DAY_MS
    with pytest.raises(SlotFenced):
        prune(flow.opened, 1, now_ms=later, tell=take_its_lease)
    catch_up_ledger(flow.opened)
    assert len(list(ledger.mappings(flow.topic, 0))) == 2
    delete_records(east, flow.topic, 1)
    assert prune_if_due(flow.opened, take_its_lease) is None, "another time"
    assert prune_if_due(flow.opened) == 1

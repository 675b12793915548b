"""The recovery point is one number, wherever it is read: in the console, its plots, and in Prometheus."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from airmirror.flows.measure import VERIFIED
from airmirror.ledger import Ledger
from airmirror.ledger.metrics import SEEN, Standing
from airmirror.web.collector import LedgerCollector, exposition
from ledger.test_ledger import entries, load
from support.console import FLOW, asked
from support.ledgers import mapping, verified

HOUR_MS = 3_600_000


def test_a_window_that_was_cut_leaves_the_recovery_point_where_it_is(
    client: TestClient, ledger: Ledger, now: int
) -> None:
    """Ten of a million records of an hour ago are verified, by a window that ended now and is verified as a whole."""
    own = ledger.flow("east->west")
    old = replace(mapping(0, 10), min_timestamp=now - HOUR_MS, max_timestamp=now - HOUR_MS, read_ms=now)
    load(own, entries(old, verified(9)))
    own.note_standings([Standing("orders", 0, "east.orders", 10, 1_000_010)])
    own.count_verified()
    own.note({}, {(VERIFIED, ""): now / 1000, (SEEN, ""): now / 1000})
    own.note_sample(lags=True)
    (flow,) = asked(client, "/console/api/overview")["flows"]
    page = asked(client, FLOW)
    assert flow["verified_ms"] == page["summary"]["verified_ms"] == now - HOUR_MS
    assert page["series"]["recovery"][-1] == pytest.approx(3_600, abs=60)
    (shown,) = (
        line
        for line in exposition(LedgerCollector(ledger)).decode().splitlines()
        if line.startswith("airmirror_recovery_point_seconds{")
    )
    assert float(shown.split()[-1]) == pytest.approx(3_600, abs=60)


def test_of_a_partition_that_was_never_verified_no_recovery_point_is_known(
    client: TestClient, ledger: Ledger, now: int
) -> None:
    own = ledger.flow("east->west")
    load(own, entries(mapping(0, 10), verified(9)))
    own.note_standings([Standing("orders", 0, "east.orders", 10, 10), Standing("orders", 1, "east.orders", 0, 10)])
    own.count_verified()
    own.note({}, {(VERIFIED, ""): now / 1000, (SEEN, ""): now / 1000})
    (flow,) = asked(client, "/console/api/overview")["flows"]
    assert flow["verified_ms"] is None

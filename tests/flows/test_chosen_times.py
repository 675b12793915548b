"""A producer chooses the times of its records, and of its batches: any number of 64 bits ends no window and no page."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airmirror.flows import positions
from airmirror.flows.audit import Audit, Bucket
from airmirror.flows.audit_report import shown_audit
from airmirror.flows.measure import measure_window
from airmirror.ledger.metrics import _ages
from airmirror.offsets.lags import lags_of
from airmirror.report.page import page
from airmirror.slot.account import Account
from airmirror.times import utc
from airmirror.wire.batches import build, parse
from airmirror.wire.plain import plain_records
from airmirror.wire.primitives import varint
from support.decoders import zigzag

LONGS = st.integers(-(2**63), 2**63 - 1)
FARTHEST = (-(2**63), -(2**60), 1_795_000_000_000_000, 2**63 - 1)


@given(LONGS, LONGS)
def test_a_records_time_is_the_one_that_a_broker_reads(base: int, when: int) -> None:
    """Kafka adds the two in 64 bits: of a batch that begins at -2^63 a record is of now."""
    delta = (when - base + 2**63) % 2**64 - 2**63
    body = b"\0" + zigzag(delta) + varint(0) + varint(1) + b"k" + varint(1) + b"v" + varint(0)
    view = memoryview(build(varint(len(body)) + body, count=1, base_timestamp=base, max_timestamp=when))
    (batch,) = parse(view, 0, len(view))
    (record,) = plain_records(view, batch)
    assert record.timestamp == when


@given(LONGS, LONGS, LONGS, LONGS)
def test_ages_fit_every_database(first: int, last: int, foreign_first: int, foreign_last: int) -> None:
    account, now = Account(start=0, target_end=0), int(time.time() * 1000)
    account.times(first, last)
    assert account.min_timestamp >= 0
    for begins, ends in ((account.min_timestamp, account.max_timestamp), (foreign_first, foreign_last)):
        mapping: Any = SimpleNamespace(min_timestamp=begins, max_timestamp=ends, time_ms=now, read_ms=now)
        assert all(-(2**63) <= age < 2**63 for age in _ages(mapping).values())


@given(LONGS, LONGS)
@example(-(2**63), 2**63 - 1)
def test_lags_of_groups_fit_every_database(first: int, last: int) -> None:
    """Of mappings that others have written, too."""
    mapping: Any = SimpleNamespace(source_start=0, source_end=10, read_ms=1, min_timestamp=first, max_timestamp=last)
    found: Any = SimpleNamespace(
        group="g", topic="orders", partition=0, key=("orders", 0), committed=SimpleNamespace(offset=0), kind="consumer",
        found=None, source=SimpleNamespace(start=0, end=10),
    )  # fmt: skip
    (row,) = lags_of("east", [found], {("orders", 0): [mapping]}, int(time.time() * 1000))
    assert row.lag_ms is None or 0 <= row.lag_ms < 2**63


def test_an_audit_shows_times_that_no_calendar_has() -> None:
    audit = Audit((), {each: Bucket(1, 1) for each in (*FARTHEST, 1_795_000_000_000)})
    text = page(shown_audit(audit, "east->west", "audit").as_dict())
    assert all((utc(each) if each >= 0 else "not known") in text for each in FARTHEST) and "2026-11-18" in text
    assert utc(2**63 - 1) == "9223372036854775807 ms" and utc(0) == "1970-01-01 00:00:00 UTC"


def test_what_is_only_shown_ends_no_window(caplog: pytest.LogCaptureFixture) -> None:
    def overflows(*_: object, **__: object) -> None:
        raise OverflowError("Python int too large to convert to SQLite INTEGER")

    opened: Any = SimpleNamespace(
        ledger=SimpleNamespace(note_window=overflows, state=lambda: SimpleNamespace(known=()))
    )
    result: Any = SimpleNamespace(window="w", standings=(), rows=())
    measure_window(opened, result, lambda key: True)
    assert "measure_window failed" in caplog.text and "SQLite" in caplog.text


def test_a_time_without_a_zone_is_of_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """As all times that are printed: else a translation would be that of another hour."""
    asked: list[int] = []
    monkeypatch.setattr(positions, "offsets_with_patience", lambda _source, _chosen, when: asked.append(when) or {})
    source: Any = SimpleNamespace(refresh=lambda _topics: None)
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        for at in ("2023-11-14T22:13:30", "2023-11-14T23:13:30+01:00"):
            positions._positions(source, {}, at)
    time.tzset()
    assert asked == [1_700_000_010_000, -1] * 2

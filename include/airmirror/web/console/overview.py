"""The console's overview: every flow's state in a few numbers, of the ledger alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airmirror.config import Flow
from airmirror.flows import measure
from airmirror.ledger import Ledger
from airmirror.ledger.database import reading
from airmirror.ledger.recovery import complete_of
from airmirror.ledger.samples import FlowSample, latest
from airmirror.ledger.showing import Totals, totals
from airmirror.rows import row_of
from airmirror.web.console.known import MOST_TEXT, KnownFlow, known, shown_decided

MOST_FROZEN = 20  # topics that are listed of a flow
RATE_MS = 10 * 60_000  # rates are of the samples of the last ten minutes
SUMS = "topics partitions behind lag_records oldest_ms unknown records bytes"  # of partitions
NO_SUMS: dict[str, Any] = dict.fromkeys(SUMS.split(), 0) | {"lag_records": None, "oldest_ms": None}  # before a window


@dataclass(frozen=True)
class Shown:
    """A flow that is shown: its DAG, whether that is paused, and its last finished run where that failed."""

    flow: Flow
    dag_id: str
    is_paused: bool
    red_run: str = ""


def overview(ledger: Ledger, shown: Mapping[str, Shown], now: int) -> list[dict[str, Any]]:
    """The flows, by name; ``shown`` by DAG, ``now`` in epoch milliseconds."""
    names = [each.flow.name for each in shown.values()]
    with reading(ledger.engine) as connection:
        sums, rates = totals(connection, names), latest(connection, names, now - RATE_MS)
        complete = complete_of(connection, names)
    found = [
        summary(
            each,
            known(ledger.flow(each.flow.name), each.red_run),
            sums.get(each.flow.name),
            rates.get(each.flow.name, []),
            complete.get(each.flow.name),
        )
        for each in shown.values()
    ]
    return sorted(found, key=lambda flow: str(flow["flow"]))


def summary(
    shown: Shown, of_flow: KnownFlow, sums: Totals | None, rates: list[FlowSample], complete: int | None
) -> dict[str, Any]:
    """One flow; times in epoch milliseconds, so that an answer stays the same until a number changes.

    ``complete``: up to when all that the source had is verified, None: not known.
    """
    measured, shut = of_flow.numbers.get((measure.MEASURED, "")), of_flow.owners.frozen
    return {
        "flow": shown.flow.name,
        "source": shown.flow.source.alias,
        "target": shown.flow.target.alias,
        "dag_id": shown.dag_id,
        "paused": shown.is_paused,
        "red_run": shown.red_run if of_flow.stopped or of_flow.decided else "",
        "stopped": of_flow.stopped,
        "state": "frozen" if of_flow.owners.shut else _state(sums, of_flow),
        "decided": shown_decided(of_flow.decided),
        "frozen": [
            {"topic": each.topic, "by": each.by, "time_ms": each.time_ms, "reason": each.reason[:MOST_TEXT]}
            for each in list(shut.values())[:MOST_FROZEN]
        ],
        **(row_of(sums, SUMS) if sums else NO_SUMS),
        "held": len(of_flow.holds),
        "failing": len(of_flow.failing),
        "measured_ms": None if measured is None else int(measured * 1000),
        "verified_ms": complete,
        "passed_ms": sums.passed_ms if sums and sums.passed_ms >= 0 else None,
        "follows_ms": shown.flow.window.follow_ms,
        **_rates(rates),
    }


def _state(sums: Totals | None, of_flow: KnownFlow) -> str:
    """The worst that is true of a flow."""
    if of_flow.stopped or any(failure.needs_somebody for failure in of_flow.failing):
        return "failing"
    if of_flow.is_held:
        return "held"
    if of_flow.decided:
        return "decided"
    if sums is None:
        return "new"
    if sums.lag_records:
        return "behind"
    completed, verified = (of_flow.numbers.get((name, "")) for name in (measure.COMPLETED, measure.VERIFIED))
    return "verified" if completed is not None and completed == verified else "unverified"


def _rates(rates: list[FlowSample]) -> dict[str, float | None]:
    """Records and bytes a second between the first and the last sample; None where counters fell, or there are too few."""
    if len(rates) < 2 or rates[-1].records < rates[0].records:
        return {"records_per_second": None, "bytes_per_second": None}
    first, last = rates[0], rates[-1]
    seconds = (last.time_ms - first.time_ms) / 1000
    return {
        "records_per_second": round((last.records - first.records) / seconds, 2),
        "bytes_per_second": round((last.bytes - first.bytes) / seconds, 1),
    }

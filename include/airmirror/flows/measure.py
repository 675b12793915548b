"""What a flow's windows and gates leave in the ledger to be shown as metrics (docs/metrics.md)."""

from __future__ import annotations

import time

from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import Opened
from airmirror.windows.errors import FlowBusy
from airmirror.windows.window import Judged, WindowResult

# Names in the ledger's table flow_metrics.
WINDOWS, SECONDS, JUDGED = "windows", "seconds", "judged"  # counters, by outcome, by phase and by result
LAST_SECONDS, MEASURED = "last_seconds", "measured"  # gauges: seconds a window took, and when (epoch seconds) one ended
COMPLETED, VERIFIED = "completed", "verified"  # gauges: when a window of all partitions ended, and one that is verified


def measure_window(opened: Opened, result: WindowResult) -> None:
    """Note where all partitions stand after a window, and how long it took."""
    ledger = opened.ledger
    ledger.note_standings(result.standings)
    ledger.count_verified()
    now = time.time()
    failed = any(row.failed for row in result.rows)
    outcome = "incomplete" if failed else "replicated" if result.rows else "empty"
    counters = {(SECONDS, phase.replace(" ", "_")): seconds for phase, seconds in result.phases.items()}
    gauges = {(MEASURED, ""): now, (LAST_SECONDS, ""): result.seconds}
    gauges |= {} if failed else {(COMPLETED, ""): now}
    gauges |= {(VERIFIED, ""): now} if result.is_verified else {}
    ledger.note(counters | {(WINDOWS, outcome): 1.0}, gauges)


def measure_failure(opened: Opened, error: AirmirrorError) -> None:
    """Note that a window ended with an error."""
    opened.ledger.note({(WINDOWS, "busy" if isinstance(error, FlowBusy) else "failed"): 1.0})


def measure_judged(opened: Opened, judged: Judged, seconds: float) -> None:
    """Add what the gate let pass to the partitions' counters; note what it did not."""
    ledger = opened.ledger
    ledger.count_verified()
    counters = {(JUDGED, "passed"): 0.0, (JUDGED, "held"): 0.0, (JUDGED, "unread"): 0.0, (SECONDS, "gate"): seconds}
    for verdict in judged.verdicts:
        result = "passed" if verdict.error is None else "unread" if verdict.error.transient else "held"
        counters[(JUDGED, result)] += 1
    # The gate alone does not make a window verified: it has nothing to say where windows fail.
    completed = ledger.numbers().get((COMPLETED, ""))
    ledger.note(counters, {} if judged.errors or completed is None else {(VERIFIED, ""): completed})

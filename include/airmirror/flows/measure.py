"""The measurements that a flow's windows and gates leave in the ledger for metrics (docs/metrics.md)."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Sequence
from typing import ParamSpec

from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import Opened, selected
from airmirror.ledger.metrics import SEEN, Standing
from airmirror.ledger.outcomes import WHOLE
from airmirror.offsets import latency
from airmirror.partitions import TopicPartition
from airmirror.windows.errors import FlowBusy, PartitionHeld
from airmirror.windows.judging import Verification
from airmirror.windows.results import WindowResult
from airmirror.windows.standing import Seen

# Names in the ledger's table flow_metrics.
WINDOWS, SECONDS, JUDGED = "windows", "seconds", "judged"  # counters, by outcome, by phase and by result
LATE = "late_runs"  # a counter
WAITED, LIMIT = "waited", "limit"  # a counter, by what was waited for; a gauge: the flow's limit, in bytes a second
LAST_WAITED = "last_waited"  # a gauge: the same of the last window
OWN_LIMIT, QUOTAS = "limit", "quotas"
LAST_SECONDS, MEASURED = "last_seconds", "measured"  # gauges: seconds a window took, and when (epoch seconds) one ended
UNTIL, OF = ("readable", "verified"), ("least", "mean", "most")
LATENCY = {f"latency_{until}_{of}": (until, of) for until in UNTIL for of in OF}  # gauges, by the heartbeats' origin
HEARTBEAT = "heartbeat"  # gauge, by origin: when the newest verified heartbeat was emitted (epoch seconds)
CHECKPOINTS, CHECKPOINT_SECONDS = "checkpoints", "checkpoint_seconds"  # a counter; a gauge: how long they last took
COMPLETED, VERIFIED = "completed", "verified"  # gauges: when a window of all partitions ended, and one that is verified

P = ParamSpec("P")

log = logging.getLogger(__name__)


def only_shown(measure: Callable[P, None]) -> Callable[P, None]:
    """A measurement that ends nothing, whatever it fails at: no window waits for a number that is only shown."""

    @functools.wraps(measure)
    def measuring(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            measure(*args, **kwargs)
        except Exception:
            log.warning("%s failed: its numbers are not shown.", measure.__name__, exc_info=True)

    return measuring


@only_shown
def measure_window(opened: Opened, result: WindowResult, tried: Callable[[TopicPartition], bool]) -> None:
    """Note where all partitions stand after a window, what is wrong with which, and how long it took.

    ``tried``: whether the window was to replicate a partition; it has nothing to say about others.
    """
    ledger = opened.ledger
    mirrored, refused = {(each.topic, each.partition) for each in result.standings}, _refused(opened, result.standings)
    left = {(each.topic, each.partition) for each in refused}
    errors = {
        row.key: row.error
        for row in result.rows
        if row.error is not None and not isinstance(row.error, PartitionHeld)  # a hold is a record of its own
    }
    ledger.note_window(
        result.window,
        errors,
        passed=lambda key: key not in left and (key not in mirrored or tried(key)),
        idle=all(isinstance(row.error, PartitionHeld) for row in result.rows),
    )
    ledger.note_standings([*result.standings, *refused])
    ledger.count_verified()
    now = time.time()
    failed = bool(refused) or any(row.failed for row in result.rows)
    outcome = "incomplete" if failed else "replicated" if result.rows else "empty"
    counters = {(SECONDS, phase.replace(" ", "_")): seconds for phase, seconds in result.phases.items()}
    gauges = {(MEASURED, ""): now, (LAST_SECONDS, ""): result.seconds}
    waited = {OWN_LIMIT: result.limited, QUOTAS: result.throttled}
    counters |= {(WAITED, by): seconds for by, seconds in waited.items() if seconds}
    gauges |= {(LAST_WAITED, by): seconds for by, seconds in waited.items()}
    gauges[(LIMIT, "")] = float(opened.flow.window.throttle_bytes_per_second or 0)
    gauges |= {} if result.seen_ms < 0 else {(SEEN, ""): result.seen_ms / 1000}
    gauges |= {} if failed else {(COMPLETED, ""): now}
    verified = not failed and result.is_verified and not ledger.unverified()  # what earlier windows left makes no row
    gauges |= {(VERIFIED, ""): now} if verified else {}
    ledger.note(counters | {(WINDOWS, outcome): 1.0}, gauges)
    ledger.note_sample(lags=True, begun_ms=int((now - result.seconds) * 1000))


@only_shown
def measure_failure(opened: Opened, window: str, error: AirmirrorError) -> None:
    """Note that a window ended with an error; that another one was at work is none that anybody need know of."""
    busy = isinstance(error, FlowBusy)
    opened.ledger.note({(WINDOWS, "busy" if busy else "failed"): 1.0})
    if not busy:
        opened.ledger.note_window(window, {WHOLE: error}, passed=lambda key: False)


@only_shown
def measure_verification(opened: Opened, verification: Verification, seconds: float) -> None:
    """Add what the gate let pass to the partitions' counters; note what it did not."""
    ledger = opened.ledger
    ledger.count_verified()
    counters = {(JUDGED, "passed"): 0.0, (JUDGED, "held"): 0.0, (JUDGED, "unread"): 0.0, (SECONDS, "gate"): seconds}
    for verdict in verification.verdicts:
        result = "passed" if verdict.error is None else "unread" if verdict.error.transient else "held"
        counters[(JUDGED, result)] += 1
    # The gate alone does not make a window verified: it has nothing to say where windows fail.
    completed = ledger.numbers().get((COMPLETED, ""))
    ledger.note(counters, {} if verification.errors or completed is None else {(VERIFIED, ""): completed})
    ledger.note_sample(lags=False)


@only_shown
def measure_meanwhile(opened: Opened, seen: Seen, *, begun_ms: int | None = None) -> None:
    """Note where all partitions stand while a window follows the log, since ``begun_ms``; add what its gate has let pass to their
    counters."""
    ledger = opened.ledger
    ledger.note_standings([*seen.standings, *_refused(opened, seen.standings)])
    ledger.count_verified()
    ledger.note({}, {(SEEN, ""): seen.seen_ms / 1000})
    ledger.note_sample(lags=True, begun_ms=begun_ms)


def _refused(opened: Opened, standings: Sequence[Standing]) -> list[Standing]:
    """What was replicated of topics that are the flow's and that no window copies now: the source or the target refuses them.
    Where they end is not seen, so that what is known of them grows old."""
    copied = {each.topic for each in standings}
    left = [key for key in opened.ledger.state().known if key[0] not in copied]
    chosen = selected(opened, {topic for topic, _ in left}) if left else {}
    return [Standing(*key, chosen[key[0]], -1, -1) for key in left if key[0] in chosen]


@only_shown
def measure_checkpoints(opened: Opened, count: int, seconds: float) -> None:
    """Note how many checkpoints were written, and the time since reading began of the groups' offsets."""
    opened.ledger.note({(CHECKPOINTS, ""): float(count)}, {(CHECKPOINT_SECONDS, ""): seconds} if count else {})


@only_shown
def measure_latency(opened: Opened) -> None:
    """Note the end-to-end latency that heartbeats tell. What can't be measured is logged, and fails nothing."""
    try:
        found = latency.measure(opened.flow, opened.ledger)
    except AirmirrorError as error:
        log.warning("The end-to-end latency could not be measured: %s", error)
        return
    gauges: dict[tuple[str, str], float] = {}
    for each in found:
        gauges |= {(name, each.origin): getattr(getattr(each, until), of) for name, (until, of) in LATENCY.items()}
        gauges[(HEARTBEAT, each.origin)] = each.newest_ms / 1000
        log.info(
            "%d heartbeats of %s: readable after %.1f s in the mean, verified after %.1f s (at most %.1f and %.1f s).",
            each.heartbeats,
            each.origin,
            each.readable.mean,
            each.verified.mean,
            each.readable.most,
            each.verified.most,
        )
    if gauges:
        opened.ledger.note({}, gauges)

"""``airmirror status``: the state of a flow."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from airmirror.errors import AirmirrorError
from airmirror.flows import measure as measured
from airmirror.flows.holds import sorted_holds
from airmirror.flows.prepare import Opened, catch_up_soon, dry_run, why_frozen, without_frozen
from airmirror.ledger import Failure, FlowLedger, WindowEnd, WindowRow
from airmirror.ledger.metrics import SEEN
from airmirror.offsets.latency import Latency, measure
from airmirror.topics.remote import RefusedTopic
from airmirror.windows.plan import Planned
from airmirror.wire.mappings import GATE, Hold

LAST = 5  # windows that are shown


@dataclass(frozen=True)
class LastWindow:
    """A window that did something, or tried to: what it committed (the mapping topic knows), and how it ended.

    ``failed``: partitions that were not replicated; None: not known, because the ledger was made again since. ``error``: what
    ended the whole window, else empty. Times in epoch milliseconds.
    """

    window: str
    ended_ms: int
    partitions: int
    copied: int
    bytes: int
    failed: int | None
    error: str


@dataclass(frozen=True, kw_only=True)
class Failing(Failure):
    """A failure, and when its partition last committed anything (-1: never), which a new ledger knows too."""

    committed_ms: int


@dataclass(frozen=True)
class Throttle:
    """The flow's limit (throttle.bytes.per.second), and the most seconds that a slot of the last window waited: for it, and for
    the brokers' quotas."""

    bytes_per_second: int | None
    limited: float
    throttled: float


@dataclass(frozen=True, kw_only=True)
class FlowStatus:
    """A flow's totals; lag in records, to the high watermark.

    ``unreachable``: why a cluster does not answer, else empty; then everything is as the ledger last saw it at ``seen_ms`` (epoch
    milliseconds; None: no window has looked yet).
    """

    flow: str
    topics: int
    partitions: int
    lag: int
    behind: int  # partitions with something to copy
    unverified: int  # mapping records that no gate has judged
    held: dict[str, str]  # partition -> reason
    errors: dict[str, str] = field(default_factory=dict)
    windows: list[LastWindow]
    failing: list[Failing]  # what failed in the last windows, without a break, since when
    latency: list[Latency] = field(default_factory=list)
    resets: list[str]  # what was decided with `airmirror reset`: when, who, why
    holds: list[Hold]
    frozen: dict[str, str]  # topic ("": the whole flow) -> by whom, when, why, and the way out
    throttle: Throttle
    refused: list[str] = field(default_factory=list)  # topics that can't be replicated, and why
    warnings: list[str] = field(default_factory=list)
    needs_somebody: bool  # nothing gets better by itself
    unreachable: str = ""
    seen_ms: int | None = None


def flow_status(opened: Opened) -> FlowStatus:
    """Read both clusters' offsets and the flow's internal topics; where one does not answer, what the ledger knows of it."""
    try:
        topics, planned = dry_run(opened)
    except AirmirrorError as error:
        if not error.transient or not opened.ledger.state().known:
            raise
        return _as_last_seen(opened, error)
    topics = without_frozen(opened, topics)
    return FlowStatus(
        topics=len(topics.topics),
        partitions=len(planned),
        lag=sum(max(0, item.high_watermark - item.start) for item in planned),
        behind=sum(1 for item in planned if item.has_work),
        errors={str(item.key): str(item.error) for item in planned if item.error},
        latency=measure(opened.flow, opened.ledger),
        refused=[str(refused) for refused in topics.refused],
        warnings=list(topics.warnings),
        **_known(opened, topics.refused, planned),
    )


def _as_last_seen(opened: Opened, error: AirmirrorError) -> FlowStatus:
    """Tell what windows have left in the ledger, and what the target says if it is the source that does not answer."""
    with suppress(AirmirrorError):
        catch_up_soon(opened)
    ledger = opened.ledger
    shown, seen = ledger.partition_metrics(), ledger.numbers().get((SEEN, ""))
    return FlowStatus(
        topics=len({row.topic for row in shown}),
        partitions=len(shown),
        lag=sum(row.lag_records for row in shown),
        behind=sum(1 for row in shown if row.lag_records),
        unreachable=str(error),
        seen_ms=None if seen is None else round(seen * 1000),
        **_known(opened),
    )


def _known(opened: Opened, refused: Sequence[RefusedTopic] = (), planned: Sequence[Planned] = ()) -> dict[str, Any]:
    """The fields that the ledger tells alone, and whether a person is needed."""
    ledger = opened.ledger
    holds, failing = sorted_holds(ledger), still_failing(ledger)
    return {
        "flow": opened.flow.name,
        "unverified": len(ledger.unverified()),
        "held": {f"{hold.topic}-{hold.partition}": hold.reason for hold in holds},
        "windows": with_ends(ledger.windows(LAST), ledger.window_ends(), LAST),
        "failing": failing,
        "resets": [str(record) for record in ledger.resets()],
        "holds": holds,
        "frozen": {topic: why for topic, why in why_frozen(opened).items() if why},
        "throttle": throttle_of(opened),
        "needs_somebody": needs_somebody(refused, planned, holds, failing),
    }


def throttle_of(opened: Opened) -> Throttle:
    """Return the flow's limit, and how long it and the brokers' quotas kept the last window waiting."""
    numbers = opened.ledger.numbers()
    waited = (numbers.get((measured.LAST_WAITED, by), 0.0) for by in (measured.OWN_LIMIT, measured.QUOTAS))
    return Throttle(opened.flow.window.throttle_bytes_per_second, *waited)


def needs_somebody(
    refused: Sequence[RefusedTopic], planned: Sequence[Planned], holds: Sequence[Hold], failing: Sequence[Failure]
) -> bool:
    """Return whether an operator must act; holds by decision are excluded, and transient errors unless they persist."""
    final = any(item.error is not None and not item.error.transient for item in planned)
    stuck = any(failure.needs_somebody for failure in failing)
    return final or stuck or bool(refused) or any(hold.by == GATE for hold in holds)


def still_failing(ledger: FlowLedger) -> list[Failing]:
    """Return what failed in the last windows that tried it, less what is held since."""
    found = without_held(ledger.failures(), ledger.holds())
    committed = {key: last.time_ms for key, last in ledger.last_mappings().items()}
    return [Failing(committed_ms=committed.get(failure.key, -1), **asdict(failure)) for failure in found]


def without_held(failures: Sequence[Failure], holds: Container[tuple[str, int]]) -> list[Failure]:
    """Return the failures of partitions that are not held: those wait for a person, whatever failed before."""
    return [failure for failure in failures if failure.key not in holds]


def with_ends(committed: Sequence[WindowRow], ends: Mapping[str, WindowEnd], most: int) -> list[LastWindow]:
    """Join what windows have ``committed`` with how windows ended: the latest that did something or failed, the newest first."""
    rows = {row.window: row for row in committed}
    found = []
    for name in rows.keys() | ends.keys():
        row, end = rows.get(name), ends.get(name)
        ended = end.time_ms if end else row.last_ms if row else 0
        did = (row.partitions, row.copied, row.bytes) if row else (0, 0, 0)
        found.append(LastWindow(name, ended, *did, *((end.failed, end.error) if end else (None, ""))))
    return sorted(found, key=lambda window: window.ended_ms, reverse=True)[:most]

"""Results as plain values, for programs (``--json``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from airmirror.flows.status import Failing
from airmirror.rows import row_of, rows_of
from airmirror.topics.remote import TopicPlan
from airmirror.topics.sync import SyncReport
from airmirror.windows.plan import Planned
from airmirror.windows.results import Row, WindowResult
from airmirror.wire.mappings import Decision, Hold


def window(result: WindowResult, refused: Sequence[str], topics: SyncReport) -> dict[str, Any]:
    return {
        **row_of(result, "flow window records=copied bytes partitions"),
        "seconds": round(result.seconds, 3),
        "cut": result.is_cut,
        "verified": _measured(result.is_verified and not refused, result.is_read_back),
        "refused": list(refused),
        "changes": list(topics.changes),
        "notes": list(topics.notes),
        "warnings": list(topics.warnings),
        "phases": {name: round(seconds, 3) for name, seconds in result.phases.items()},
        "followed": None if result.followed is None else asdict(result.followed),
        "rows": rows_of(
            result.rows,
            "topic partition remote_topic source target copied control aborted holes lost bytes lag verified outcome "
            "error",
            source=lambda row: [row.source_start, row.source_end],
            target=lambda row: [row.target_start, row.target_end],
            verified=lambda row: _measured(row.verified and row.error is None, row.read_back),
            outcome=lambda row: str(row.outcome),
            error=_error,
        ),
    }


def _measured(passed: bool, read_back: bool) -> bool | None:
    """None: it has passed, but nobody has read the target (window.verify=acks)."""
    return passed if read_back or not passed else None


def _error(row: Row | Planned) -> str | None:
    return str(row.error) if row.error else None


def plan(topics: TopicPlan, planned: Sequence[Planned], failing: Sequence[Failing]) -> dict[str, Any]:
    return {
        "create": {new.name: new.partitions for new in topics.create},
        "grow": {more.name: more.partitions for more in topics.grow},
        "configs": [asdict(change) for change in topics.configs],
        "acls": [asdict(acl) for acl in topics.acls],
        "refused": [str(refused) for refused in topics.refused],
        "notes": list(topics.notes),
        "warnings": list(topics.warnings),
        "partitions": rows_of(planned, "topic partition remote_topic start end error", error=_error),
        "failing": [asdict(failure) for failure in failing],
    }


def records(found: Sequence[Hold] | Sequence[Decision]) -> list[dict[str, Any]]:
    """Holds or decisions as plain values; an action by its name."""
    rows = [asdict(record) for record in found]
    return [row | ({"action": row["action"].name.lower()} if "action" in row else {}) for row in rows]

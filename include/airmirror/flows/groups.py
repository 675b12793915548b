"""The post-window tasks of a flow for its consumer groups: checkpoints, group offsets."""

from __future__ import annotations

import time
from collections.abc import Callable

from airmirror.config import Flow
from airmirror.flows.measure import measure_checkpoints
from airmirror.flows.prepare import Opened, caught_up
from airmirror.ledger import GroupOffset
from airmirror.offsets.checkpoints import emit_checkpoints
from airmirror.offsets.groups import sync_group_offsets
from airmirror.windows.fence import HeldLease

CHECKPOINTS, GROUP_OFFSETS = "emit_checkpoints", "sync_group_offsets"  # the tasks, as in Airflow
EARLY = 0.1  # a schedule of a minute does not come to the second: a task may be early by so much of its interval


def due(opened: Opened, task: str, seconds: float) -> bool:
    """Return whether a task's interval has passed since it began last, which the ledger remembers; if lost, it has."""
    last = opened.ledger.last_begun(task)
    return last is None or time.time() * 1000 - last >= seconds * 1000 * (1 - EARLY)


def tasks_due(opened: Opened) -> set[str]:
    """Return the tasks for groups that are due now."""
    return {task for task in (CHECKPOINTS, GROUP_OFFSETS) if _is_due(opened, task)}


def intervals(flow: Flow) -> dict[str, float]:
    """The tasks for groups that the configuration wants, each with its interval in seconds."""
    settings, found = flow.settings, dict[str, float]()
    if settings.emit_checkpoints_enabled:
        found[CHECKPOINTS] = settings.emit_checkpoints_interval_seconds
    if settings.sync_group_offsets_enabled:
        found[GROUP_OFFSETS] = settings.sync_group_offsets_interval_seconds
    return found


def _is_due(opened: Opened, task: str) -> bool:
    wanted = intervals(opened.flow)
    return task in wanted and due(opened, task, wanted[task])


def emit_checkpoints_if_due(
    opened: Opened, window: str, tell: Callable[[str], None] = lambda phase: None, under: HeldLease | None = None
) -> int | None:
    """Write checkpoints if it is time to; how many, None: not now. ``under``: as ``emit_checkpoints`` has it, and whoever
    has it knows that it is time."""
    ledger = opened.ledger
    if under is None and not _is_due(opened, CHECKPOINTS):
        return None
    now_ms = int(time.time() * 1000)
    opened = caught_up(opened, under)
    begun = time.monotonic()
    count = emit_checkpoints(opened.flow, ledger, window=window, tell=tell, under=under)
    measure_checkpoints(opened, count, time.monotonic() - begun)
    ledger.note_begun(CHECKPOINTS, now_ms)
    return count


def sync_group_offsets_if_due(opened: Opened, under: HeldLease | None = None) -> list[GroupOffset] | None:
    """Move idle groups on the target if it is time to; what became of each, None: not now. ``under``: as
    ``sync_group_offsets`` has it, and whoever has it knows that it is time."""
    if under is None and not _is_due(opened, GROUP_OFFSETS):
        return None
    now_ms = int(time.time() * 1000)
    opened = caught_up(opened, under)
    rows = sync_group_offsets(opened.flow, opened.ledger, under=under)
    opened.ledger.note_begun(GROUP_OFFSETS, now_ms)
    return rows

"""The post-window tasks: offset syncs, checkpoints, group offsets. A task for each in Airflow; a command runs all."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

from airmirror.config import Flow
from airmirror.errors import AirmirrorError, counted
from airmirror.flows.measure import measure_checkpoints
from airmirror.flows.prepare import Opened, catch_up_ledger, caught_up
from airmirror.offsets.checkpoints import emit_checkpoints
from airmirror.offsets.groups import sync_group_offsets
from airmirror.offsets.pruning import prune_mappings
from airmirror.offsets.syncs import emit_offset_syncs
from airmirror.slot.errors import SlotFenced
from airmirror.tell import Tell, silent
from airmirror.windows.errors import FlowBusy, FlowFrozen
from airmirror.windows.fence import HeldLease

# As in Airflow, in the order in which they are done.
POST_WINDOW_TASKS = OFFSET_SYNCS, CHECKPOINTS, GROUP_OFFSETS = (
    "emit_offset_syncs",
    "emit_checkpoints",
    "sync_group_offsets",
)
PRUNE, PRUNE_SECONDS = "prune_mappings", 3600
EARLY = 0.1  # a schedule of a minute does not come to the second: a task may be early by so much of its interval


def due(opened: Opened, task: str, seconds: float) -> bool:
    """Return whether a task's interval has passed since it began last, which the ledger remembers; if lost, it has, and if a
    machine whose clock is ahead has noted a time that is still to come."""
    last, now = opened.ledger.last_begun(task), time.time() * 1000
    return last is None or not last <= now < last + seconds * 1000 * (1 - EARLY)


def tasks_due(opened: Opened) -> set[str]:
    """Return the tasks for groups that are due now."""
    return {task for task, seconds in intervals(opened.flow).items() if due(opened, task, seconds)}


def intervals(flow: Flow) -> dict[str, float]:
    """The tasks for groups that the configuration wants, each with its interval in seconds."""
    settings, found = flow.settings, dict[str, float]()
    if settings.emit_checkpoints_enabled:
        found[CHECKPOINTS] = settings.emit_checkpoints_interval_seconds
    if settings.sync_group_offsets_enabled:
        found[GROUP_OFFSETS] = settings.sync_group_offsets_interval_seconds
    return found


@dataclass(frozen=True)
class PostWindowTask:
    """One of POST_WINDOW_TASKS, and what it has done, in a sentence, or what is wrong."""

    name: str
    said: str
    error: AirmirrorError | None = None


def do_task(opened: Opened, name: str, window: str, tell: Tell = silent, under: HeldLease | None = None) -> str:
    """Do one post-window task under a lease of the name ``window``, if it is time to; what was done. Mapping records that are no
    longer needed are pruned after offset syncs. ``under``: in a window that follows the log, under its own lease, without
    pruning, and now. Raises an AirmirrorError.
    """
    if under is None and name != OFFSET_SYNCS and name not in tasks_due(opened):
        return f"not yet: {name.replace('_', '.')}.interval.seconds"
    now_ms, opened = int(time.time() * 1000), caught_up(opened, under)
    flow, ledger, begun = opened.flow, opened.ledger, time.monotonic()
    if name == OFFSET_SYNCS:
        written = emit_offset_syncs(flow, ledger, window=window, tell=tell, under=under)
        if under is None:
            prune_if_due(opened, tell)
        return f"{written} offset syncs written"
    if name == CHECKPOINTS:
        count = emit_checkpoints(flow, ledger, window=window, tell=tell, under=under)
        measure_checkpoints(opened, count, time.monotonic() - begun)
        said = f"{counted(count, 'checkpoint')} written"
    else:
        rows = sync_group_offsets(flow, ledger, under=under)
        moved = sum(1 for row in rows if not row.reason)
        said = f"{counted(moved, 'position')} of groups written, {len(rows) - moved} left as they are"
    ledger.note_begun(name, now_ms)
    return said


def enabled_tasks(flow: Flow) -> tuple[str, ...]:
    """Those that the configuration wants; offset syncs in any case, because mapping records are pruned there."""
    return (OFFSET_SYNCS, *intervals(flow))


def do_tasks(opened: Opened, names: Collection[str], window: str, tell: Tell = silent) -> list[PostWindowTask]:
    """Do the post-window tasks that are enabled and among ``names``. One that fails stops no other, as in a run."""
    done = []
    for name in (each for each in enabled_tasks(opened.flow) if each in names):
        try:
            done.append(PostWindowTask(name, do_task(opened, name, f"{window}-{name}", tell)))
        except AirmirrorError as error:
            done.append(PostWindowTask(name, "failed", error))
    return done


def prune_if_due(opened: Opened, tell: Tell = silent) -> int | None:
    """Once an hour delete the mapping records below the source's log starts; how many, None: not now.

    Where another window is at work, or has taken the lease meanwhile, it is not now.
    """
    if not due(opened, PRUNE, PRUNE_SECONDS):
        return None
    catch_up_ledger(opened)
    opened.ledger.count_verified()
    try:
        count = prune_mappings(opened.flow, opened.ledger, tell)
    except (FlowBusy, FlowFrozen, SlotFenced) as error:
        tell(f"mapping records are pruned another time: {error}")
        return None
    tell(f"{count} mapping records pruned that lay below the source's log starts")
    opened.ledger.note_begun(PRUNE)
    return count

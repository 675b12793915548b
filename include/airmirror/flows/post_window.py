"""The post-window tasks: offset syncs, checkpoints, group offsets. A task for each in Airflow; a command runs all."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.flows.measure import measure_checkpoints
from airmirror.flows.prepare import Opened, catch_up_ledger, caught_up
from airmirror.ledger import GroupOffset
from airmirror.offsets.checkpoints import emit_checkpoints
from airmirror.offsets.groups import sync_group_offsets
from airmirror.offsets.pruning import prune_mappings
from airmirror.offsets.syncs import emit_offset_syncs
from airmirror.slot.errors import SlotFenced
from airmirror.tell import Tell, silent
from airmirror.windows.errors import FlowBusy, FlowFrozen
from airmirror.windows.fence import HeldLease

CHECKPOINTS, GROUP_OFFSETS = "emit_checkpoints", "sync_group_offsets"  # the tasks, as in Airflow
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


def emit_checkpoints_if_due(
    opened: Opened, window: str, tell: Tell = silent, under: HeldLease | None = None
) -> int | None:
    """Write checkpoints if it is time to; how many, None: not now. ``under``: as ``emit_checkpoints`` has it, and whoever
    has it knows that it is time."""
    ledger = opened.ledger
    if under is None and CHECKPOINTS not in tasks_due(opened):
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
    if under is None and GROUP_OFFSETS not in tasks_due(opened):
        return None
    now_ms = int(time.time() * 1000)
    opened = caught_up(opened, under)
    rows = sync_group_offsets(opened.flow, opened.ledger, under=under)
    opened.ledger.note_begun(GROUP_OFFSETS, now_ms)
    return rows


OFFSET_SYNCS = "emit_offset_syncs"
PRUNE, PRUNE_SECONDS = "prune_mappings", 3600
POST_WINDOW_TASKS = (OFFSET_SYNCS, CHECKPOINTS, GROUP_OFFSETS)  # in the order in which they are done


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
    if name == OFFSET_SYNCS:
        opened = caught_up(opened, under)
        written = emit_offset_syncs(opened.flow, opened.ledger, window=window, tell=tell, under=under)
        if under is None:
            prune_if_due(opened, tell)
        return f"{written} offset syncs written"
    interval = f"not yet: {name.replace('_', '.')}.interval.seconds"
    if name == CHECKPOINTS:
        count = emit_checkpoints_if_due(opened, window, tell, under)
        return interval if count is None else f"{count} checkpoints written"
    rows = sync_group_offsets_if_due(opened, under)
    if rows is None:
        return interval
    moved = sum(1 for row in rows if not row.reason)
    return f"{moved} positions of groups written, {len(rows) - moved} left as they are"


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

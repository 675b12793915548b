"""The post-window tasks: offset syncs, checkpoints, group offsets. A task for each in Airflow; a command runs all."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.flows.groups import (
    CHECKPOINTS,
    GROUP_OFFSETS,
    emit_checkpoints_if_due,
    intervals,
    sync_group_offsets_if_due,
)
from airmirror.flows.maintenance import prune_if_due
from airmirror.flows.prepare import Opened, caught_up
from airmirror.offsets.syncs import emit_offset_syncs
from airmirror.windows.fence import HeldLease

OFFSET_SYNCS = "emit_offset_syncs"
OF_GROUPS = (CHECKPOINTS, GROUP_OFFSETS)
POST_WINDOW_TASKS = (OFFSET_SYNCS, *OF_GROUPS)  # in the order in which they are done

Tell = Callable[[str], None]


@dataclass(frozen=True)
class PostWindowTask:
    """One of POST_WINDOW_TASKS, and what it has done, in a sentence, or what is wrong."""

    name: str
    said: str
    error: AirmirrorError | None = None


def do_task(
    opened: Opened, name: str, window: str, tell: Tell = lambda phase: None, under: HeldLease | None = None
) -> str:
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


def do_tasks(
    opened: Opened, names: Collection[str], window: str, tell: Tell = lambda phase: None
) -> list[PostWindowTask]:
    """Do the post-window tasks that are enabled and among ``names``. One that fails stops no other, as in a run."""
    done = []
    for name in (each for each in enabled_tasks(opened.flow) if each in names):
        try:
            done.append(PostWindowTask(name, do_task(opened, name, f"{window}-{name}", tell)))
        except AirmirrorError as error:
            done.append(PostWindowTask(name, "failed", error))
    return done

"""The rounds after a window: offset syncs, checkpoints, group offsets. A task for each in Airflow; a command runs all."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass

from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.flows.measure import measure_checkpoints
from airmirror.flows.prepare import Opened, catch_up_ledger, caught_up
from airmirror.ledger import GroupOffset
from airmirror.offsets.checkpoints import emit_checkpoints
from airmirror.offsets.groups import sync_group_offsets
from airmirror.offsets.pruning import prune_segments
from airmirror.offsets.syncs import emit_offset_syncs
from airmirror.windows.errors import FlowBusy, FlowClosed
from airmirror.windows.fence import HeldClaim

CHECKPOINTS, GROUP_OFFSETS = "emit_checkpoints", "sync_group_offsets"  # rounds, and the tasks that do them
EARLY = 0.1  # a schedule of a minute does not come to the second: a round may be early by so much of its interval


def due(opened: Opened, task: str, seconds: float) -> bool:
    """Return whether a task's interval has passed since its last round began, which the ledger remembers; if lost, it has."""
    last = opened.ledger.last_round(task)
    return last is None or time.time() * 1000 - last >= seconds * 1000 * (1 - EARLY)


def rounds_due(opened: Opened) -> set[str]:
    """Return the rounds for groups that are due now."""
    return {task for task in (CHECKPOINTS, GROUP_OFFSETS) if _is_due(opened, task)}


def intervals(flow: Flow) -> dict[str, float]:
    """The rounds for groups that the configuration wants, each with its interval in seconds."""
    settings, found = flow.settings, dict[str, float]()
    if settings.emit_checkpoints_enabled:
        found[CHECKPOINTS] = settings.emit_checkpoints_interval_seconds
    if settings.sync_group_offsets_enabled:
        found[GROUP_OFFSETS] = settings.sync_group_offsets_interval_seconds
    return found


def _is_due(opened: Opened, task: str) -> bool:
    wanted = intervals(opened.flow)
    return task in wanted and due(opened, task, wanted[task])


def checkpoints_round(
    opened: Opened, window: str, tell: Callable[[str], None] = lambda phase: None, under: HeldClaim | None = None
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
    ledger.note_round(CHECKPOINTS, now_ms)
    return count


def group_offsets_round(opened: Opened, under: HeldClaim | None = None) -> list[GroupOffset] | None:
    """Move idle groups on the target if it is time to; what became of each, None: not now. ``under``: as
    ``sync_group_offsets`` has it, and whoever has it knows that it is time."""
    if under is None and not _is_due(opened, GROUP_OFFSETS):
        return None
    now_ms = int(time.time() * 1000)
    opened = caught_up(opened, under)
    rows = sync_group_offsets(opened.flow, opened.ledger, under=under)
    opened.ledger.note_round(GROUP_OFFSETS, now_ms)
    return rows


OFFSET_SYNCS = "emit_offset_syncs"
OF_GROUPS = (CHECKPOINTS, GROUP_OFFSETS)
PRUNE, PRUNE_SECONDS = "prune_segments", 3600
ROUNDS = (OFFSET_SYNCS, *OF_GROUPS)  # in the order in which they are done

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Round:
    """One of ROUNDS, and what it has done, in a sentence, or what is wrong."""

    name: str
    said: str
    error: AirmirrorError | None = None


def do_round(
    opened: Opened, name: str, window: str, tell: Tell = lambda phase: None, under: HeldClaim | None = None
) -> str:
    """Do one round under a claim of the name ``window``, if it is time to; what was done. Segment records that are no longer
    needed are pruned after offset syncs. ``under``: in a window that follows the log, under its own claim, without pruning, and
    now. Raises an AirmirrorError.
    """
    if name == OFFSET_SYNCS:
        opened = caught_up(opened, under)
        written = emit_offset_syncs(opened.flow, opened.ledger, window=window, tell=tell, under=under)
        if under is None:
            prune_round(opened, tell)
        return f"{written} offset syncs written"
    interval = f"not yet: {name.replace('_', '.')}.interval.seconds"
    if name == CHECKPOINTS:
        count = checkpoints_round(opened, window, tell, under)
        return interval if count is None else f"{count} checkpoints written"
    rows = group_offsets_round(opened, under)
    if rows is None:
        return interval
    moved = sum(1 for row in rows if not row.reason)
    return f"{moved} positions of groups written, {len(rows) - moved} left as they are"


def enabled_rounds(flow: Flow) -> tuple[str, ...]:
    """Those that the configuration wants; offset syncs in any case, because segment records are pruned there."""
    return (OFFSET_SYNCS, *intervals(flow))


def follow(opened: Opened, names: Collection[str], window: str, tell: Tell = lambda phase: None) -> list[Round]:
    """Do the rounds that are enabled and among ``names``. One that fails stops no other, as in a run."""
    done = []
    for name in (each for each in enabled_rounds(opened.flow) if each in names):
        try:
            done.append(Round(name, do_round(opened, name, f"{window}-{name}", tell)))
        except AirmirrorError as error:
            done.append(Round(name, "failed", error))
    return done


def prune_round(opened: Opened, tell: Callable[[str], None] = lambda phase: None) -> int | None:
    """Once an hour delete the segment records below the source's log starts; how many, None: not now.

    Where another window is at work it is not now.
    """
    if not due(opened, PRUNE, PRUNE_SECONDS):
        return None
    catch_up_ledger(opened)
    opened.ledger.count_verified()
    try:
        count = prune_segments(opened.flow, opened.ledger, window=f"prune-{uuid.uuid4().hex[:12]}", tell=tell)
    except (FlowBusy, FlowClosed) as error:
        tell(f"segment records are pruned another time: {error}")
        return None
    tell(f"{count} segment records pruned that lay below the source's log starts")
    opened.ledger.note_round(PRUNE)
    return count

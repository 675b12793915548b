"""The rounds after a window: offset syncs, checkpoints, group offsets. A task for each in Airflow; a command runs all."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.flows.groups import CHECKPOINTS, GROUP_OFFSETS, checkpoints_round, group_offsets_round, intervals
from airmirror.flows.maintenance import prune_round
from airmirror.flows.prepare import Opened, caught_up
from airmirror.offsets.syncs import emit_offset_syncs
from airmirror.windows.fence import HeldClaim

OFFSET_SYNCS = "emit_offset_syncs"
OF_GROUPS = (CHECKPOINTS, GROUP_OFFSETS)
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

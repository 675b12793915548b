"""Undoing a failover while it is possible: groups stand where they stood before, and the flow is unfrozen.

It is possible as long as no application has gone further over there: no group that was moved has moved on, and nobody has written
to a remote topic. Else records would be read twice, or lie between those that windows copy. Of a group whose position over there
has expired, or was deleted, nobody knows what it has read there: it is named, and reads that again.
"""

from __future__ import annotations

from dataclasses import dataclass

from airmirror.errors import command, counted
from airmirror.flows.freezing import check_nothing_returns, commit_change, overtaking, owners_now, taken
from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.flows.resuming import resume_after_rescues
from airmirror.report.document import Document, Section
from airmirror.runbooks.errors import CannotUndo
from airmirror.runbooks.failover.order import FailoverOrder
from airmirror.runbooks.moving import GroupsDisplaced, MappingWriter, PutBack, moved_again, put_back, to_put_back
from airmirror.runbooks.runbook import SILENT, Progress
from airmirror.runbooks.shown import put_back_section, shown_undo
from airmirror.runbooks.written import written_since
from airmirror.windows.errors import unfreeze_command
from airmirror.windows.fence import new_window
from airmirror.windows.mirror import Journal
from airmirror.wire.owners import Change


@dataclass(frozen=True)
class UndoneFailover:
    """An undo that would be done, or was: groups put back, and whether the flow is unfrozen; ``reasons`` why it can't."""

    flow: str
    groups: tuple[PutBack, ...]
    is_frozen: bool
    reasons: tuple[str, ...]


def undo_plan(opened: Opened) -> UndoneFailover:
    """Return what an undo would do now. Only the target is asked; nothing is written but the ledger."""
    is_frozen = owners_now(opened).whole is not None
    with Journal.open(opened.flow, opened.ledger, "failover") as journal:
        return _look(opened, journal, is_frozen)


def look(opened: Opened, order: FailoverOrder) -> Document:
    return _shown(undo_plan(opened), done=False)


def undo(opened: Opened, order: FailoverOrder, progress: Progress = SILENT) -> Document:
    """Put groups back and unfreeze the flow, under one lease; done again, it does what is left. Raises CannotUndo,
    StillReturning, ReturnNotFinished, GroupsActive, GroupsDisplaced, FlowBusy, or the target's error.
    """
    reason, by, tell = order.reason, order.by, progress.phase
    found = undo_plan(opened)
    if not found.is_frozen and not found.groups:
        return _shown(found, done=True)  # no window is ended for nothing
    check_nothing_returns(opened)
    with overtaking(opened, new_window("undo"), tell) as granted:
        check_nothing_returns(opened)  # a return may have begun since
        found = _look(opened, granted.journal, granted.owners.whole is not None)
        if found.reasons:
            raise CannotUndo(found.flow, found.reasons, "failover", _way_out(found))
        tell(f"putting {counted(len(found.groups), 'position')} of groups back")
        there = put_back(MappingWriter.of(granted), found.groups)
        if found.is_frozen:
            resume_after_rescues(opened, granted, by=by, reason=reason, tell=tell)
            commit_change(granted, Change.UNFREEZE, (), reason=reason, by=by)
        granted.journal.catch_up()
        if again := moved_again(granted.journal, lambda each: each.is_failovers, there):  # a cut-over takes no lease
            raise GroupsDisplaced(found.flow, tuple(again))
    catch_up_ledger(opened)
    return _shown(found, done=True)


def _way_out(found: UndoneFailover) -> str:
    # Others have written on the target: unfrozen, windows would stop there, or mix in.
    if len(found.reasons) > sum(bool(each.why_not) for each in found.groups):
        back = command("failback", "run", "--reason", "…", flow=found.flow)
        return f"what applications have written on the target returns by a failback: {back} shows it"
    return f"{unfreeze_command(found.flow)} unfreezes the flow alone, and leaves groups where they are"


def _shown(found: UndoneFailover, *, done: bool) -> Document:
    state = "is unfrozen" if done else "would be unfrozen" if found.is_frozen else "is not frozen"
    unfreezes = [{"flow": found.flow}] if found.is_frozen else []
    away = sum(not each.is_back for each in found.groups)
    headline = f"{found.flow} {state}; {counted(away, 'position')} of groups {'went' if done else 'would go'} back."
    sections = [Section("unfreezes", unfreezes, "Unfrozen"), put_back_section(found.groups)]
    return shown_undo("failover", found.flow, headline, found.reasons, _way_out(found), sections, found.groups)


def _look(opened: Opened, journal: Journal, is_frozen: bool) -> UndoneFailover:
    groups = to_put_back(journal, lambda each: each.is_failovers)
    reasons = [each.why_not for each in groups if each.why_not]
    if groups or is_frozen:
        rows = {(each.topic, each.remote_topic) for each in journal.index.last_mappings().values()}
        rows |= {(each.topic, each.remote_topic) for each in journal.index.partition_metrics()}  # of what is empty too
        ours = taken(opened.flow, journal.index.owners(), dict(rows))
        reasons += written_since(journal, {remote for topic, remote in rows if topic in ours})
    return UndoneFailover(opened.flow.name, tuple(groups), is_frozen, tuple(reasons))

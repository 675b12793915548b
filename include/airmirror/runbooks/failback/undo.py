"""Undoing a failback while it is possible: nothing returns any more, groups stand where they stood, and the flow stays frozen.

It is possible until the flow is unfrozen, as long as no group that was moved has gone further over there. What has returned by
then stays on the source; the account of it, which is that of the reverse flow, too: another failback resumes after it, a rescue
leaves it out, and the flow is not unfrozen over it (flows.resuming). So it can be planned again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from airmirror.errors import command, counted
from airmirror.flows.freezing import commit_change
from airmirror.flows.prepare import catch_up_ledger, catch_up_soon
from airmirror.report.document import Document, Section
from airmirror.runbooks.errors import CannotUndo
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.pair import Pair, both_leased, check_known, moved_by
from airmirror.runbooks.failback.unfreezing import write_forgotten
from airmirror.runbooks.moving import MappingWriter, PutBack, put_back, to_put_back
from airmirror.runbooks.runbook import SILENT, Progress
from airmirror.runbooks.shown import put_back_section, shown_undo
from airmirror.windows.fence import GrantedLease
from airmirror.windows.mirror import Journal
from airmirror.wire.owners import Change


@dataclass(frozen=True)
class UndoneReturn:
    """An undo that would be done, or was: remote topics that return no more, groups put back; ``reasons`` why it can't."""

    flow: str
    topics: Mapping[str, str]
    groups: tuple[PutBack, ...]
    reasons: tuple[str, ...]


def undo_plan(pair: Pair, topics: Collection[str] = ()) -> UndoneReturn:
    """Return what an undo would do now, of ``topics`` of the source; none: for the whole flow. Only the ledger is written.

    Raises NothingReturns for topics of which the flow knows nothing.
    """
    catch_up_soon(pair.reverse)
    with Journal.open(pair.reverse.flow, pair.reverse.ledger, "failback") as journal:
        return _look(pair, journal, topics)


def look(pair: Pair, order: FailbackOrder) -> Document:
    """The document of what an undo would do now. Raises NoReverseFlow."""
    return _shown(undo_plan(pair, order.topics), order, done=False)


def undo(pair: Pair, order: FailbackOrder, progress: Progress = SILENT) -> Document:
    """End the return of the order's topics, none: for the whole flow, under the leases of both flows; done again, it does what is
    left. Raises NothingReturns, CannotUndo, GroupsActive, FlowBusy, SlotFenced, or a cluster's error.
    """
    found = undo_plan(pair, order.topics)
    if not found.topics and not found.groups:
        return _shown(found, order, done=True)  # no window is ended for nothing
    with both_leased(pair, progress.phase) as (frozen, granted):
        found = _look(pair, granted.journal, order.topics)
        if found.reasons:
            raise CannotUndo(found.flow, found.reasons, "failback", _way_out(found.flow, order))
        progress.phase(f"putting {counted(len(found.groups), 'position')} of groups back")
        frozen.check()  # a failback may have leased both flows, and be about to finish
        put_back(MappingWriter.of(granted), found.groups)
        give_up(frozen, granted, found.topics, order)
    catch_up_ledger(pair.reverse)
    return _shown(found, order, done=True)


def _way_out(flow: str, order: FailbackOrder) -> str:
    finish = command("failback", "run", "--reason", "…", "--yes", flow=flow, topics=order.topics)
    return f"finish it: {finish}"


def _shown(found: UndoneReturn, order: FailbackOrder, *, done: bool) -> Document:
    rows = [{"topic": topic, "returns_from": remote} for remote, topic in sorted(found.topics.items())]
    over = counted(len(rows), "topic") if rows else "no topic"
    headline = f"{found.flow}: nothing of {over} {'returns' if done else 'would return'} any more."
    sections = [Section("topics", rows, "Topics", brief="*", empty="none returns"), put_back_section(found.groups)]
    return shown_undo(
        "failback", found.flow, headline, found.reasons, _way_out(found.flow, order), sections, found.groups
    )


def give_up(frozen: GrantedLease, granted: GrantedLease, names: Mapping[str, str], order: FailbackOrder) -> None:
    """Nothing of these remote topics returns any more, under the leases of both flows; done again, nothing is written.

    While the reverse flow's lease holds after the end is written, no window of it has looked before: only then may they be
    unfrozen.
    """
    which = set(names.values())
    commit_change(frozen, Change.END, order.topics, which=which, reason=order.reason, by=order.by)
    granted.check()
    write_forgotten(granted, names, order)
    commit_change(frozen, Change.GIVE_UP, order.topics, which=which, reason=order.reason, by=order.by)


def _look(pair: Pair, journal: Journal, topics: Collection[str]) -> UndoneReturn:
    names, owners = pair.returning(topics), pair.forward.ledger.owners()
    check_known(pair.forward, set(topics) - owners.records.keys())
    groups = to_put_back(journal, moved_by(pair, names, topics))
    reasons = [each.why_not for each in groups if each.why_not]
    return UndoneReturn(pair.forward.flow.name, names, tuple(groups), tuple(reasons))

"""The steps of a failover.

*Planned*: the source is quiet, drained and verified to its end before the flow is frozen. *Disaster*: the flow is frozen first,
and what is committed is judged from the target alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from airmirror.clusters.protocol.groups import committed_offsets, list_groups
from airmirror.errors import AirmirrorError, command
from airmirror.flows.freezing import check_nothing_returns, freeze, owners_now
from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.ledger import GroupOffset
from airmirror.offsets.positions import GroupPosition, group_positions, held_back
from airmirror.offsets.translation import Reason, Translated
from airmirror.runbooks.draining import await_quiet, check_drained, drain, undrained
from airmirror.runbooks.errors import RunbookError
from airmirror.runbooks.failover.alone import Unproven, verify_alone
from airmirror.runbooks.failover.groups import rows_as_last_seen, stays
from airmirror.runbooks.failover.order import FailoverOrder
from airmirror.runbooks.failover.plan import unreachable
from airmirror.runbooks.moving import GroupsDisplaced, MappingWriter, check_still, displaced, move_groups, not_exact
from airmirror.runbooks.runbook import SILENT, Progress
from airmirror.windows.fence import fence_around, leased, new_window
from airmirror.windows.mirror import Journal, Mirror, caught_up_reverse


class SourceAnswers(AirmirrorError):
    """A failover as after a disaster, although the source answers: a planned one loses nothing."""

    flow: str
    says = (
        "flow {0.flow!r}: its source answers, so that nothing need be lost: "
        "{airmirror:failover run --way planned --reason … --yes}; only where it can't be drained, add --anyway to "
        "the way of a disaster"
    )


class SourceGone(AirmirrorError):
    """A planned failover whose source can't be reached; ``reason``: what it was asked, and what came of it."""

    flow: str
    reason: str
    says = (
        "flow {0.flow!r}: a planned failover needs its source; if it does not come back: "
        "{airmirror:failover run --way disaster --reason … --yes}: {0.reason}"
    )


class GroupsNotExact(RunbookError):
    """Groups that would not resume at the very next record. Nothing was frozen."""

    says = (
        "groups would not resume at the very next record, so that nothing was frozen; {airmirror:groups} shows them; leave them "
        "out with groups.exclude, or add --inexact"
    )


class FreezeFirst(AirmirrorError):
    """A step of a failover that comes after the freeze, of a flow that is not frozen, so that its windows still write; ``open``:
    topics that were unfrozen by their names since."""

    flow: str
    way: str
    open: tuple[str, ...] = ()
    anyway: bool = False

    def __str__(self) -> str:
        way = ("--way", self.way, *(("--anyway",) if self.anyway else ()))
        freeze = command("failover", "run", *way, "--step", "freeze", "--reason", "…", "--yes", flow=self.flow)
        of_it = f": {', '.join(self.open)}" if self.open else ""
        return f"flow {self.flow!r} is not frozen{of_it}; take the step freeze before this one: {freeze}"


class WrittenWhileFreezing(RunbookError):
    """Records of the source that a planned failover has not replicated: written while the flow was frozen, or since."""

    says = (
        "it is frozen, and its source was written to while it was frozen or since: stop who writes there, undo it, and do this "
        "again: {airmirror:failover undo --reason … --yes}; or leave them there, and fail over: "
        "{airmirror:failover run --way disaster --anyway --reason … --yes}"
    )


def check_way(opened: Opened, order: FailoverOrder) -> None:
    """Raise SourceAnswers, or SourceGone, where the way is not that of the source as it is now. Planned again, of a flow that is
    failed over: StillReturning, ReturnNotFinished where its records return, or have returned and it has no account of them."""
    error = unreachable(opened)
    if order.way == "disaster" and not error and not order.anyway:
        raise SourceAnswers(opened.flow.name)
    if order.way == "planned" and error:
        raise SourceGone(opened.flow.name, error)
    if order.way == "planned" and owners_now(opened).whole is not None:
        check_nothing_returns(opened)


def drain_step(opened: Opened, order: FailoverOrder, progress: Progress = SILENT) -> None:
    """The source is quiet, all that is open is verified, groups are exact, and none would be left. Of a flow that is frozen only
    the first is asked.

    Raises SourceNotQuiet, NotDrained, GroupsNotExact, or a cluster's error.
    """
    await_quiet(opened, still_ms=opened.flow.settings.failover_quiet_ms, seconds=order.wait, tell=progress.phase)
    if owners_now(opened).shut is None:
        drain(opened, progress.phase)
        if not order.inexact and (wrong := _not_ready(opened, order)):
            raise GroupsNotExact(opened.flow.name, tuple(wrong))


def freeze_step(opened: Opened, order: FailoverOrder, progress: Progress = SILENT) -> None:
    """Freeze the flow; planned: only where all of the source is verified when nobody writes any more. Raises NotDrained,
    WrittenWhileFreezing, also when it is done again, DecisionIncomplete, FlowBusy, FenceStuck.
    """
    is_planned = order.way == "planned"
    check = partial(check_drained, opened) if is_planned else lambda: None
    freeze(opened, (), reason=order.reason, by=order.by, purpose="failover-freeze", last=check, tell=progress.phase)
    if is_planned and (left := undrained(opened)):  # come between the last look and the freeze, or since
        raise WrittenWhileFreezing(opened.flow.name, tuple(left))
    progress.line(f"flow {opened.flow.name} is frozen: no window writes to its remote topics any more")


def judge_step(opened: Opened, order: FailoverOrder, progress: Progress = SILENT) -> list[Unproven]:
    """Judge what is committed from the target alone; what is not proven. Raises FreezeFirst."""
    _check_frozen(opened, order)
    left = verify_alone(opened, new_window("failover-judge"))
    for each in left:
        progress.line(f"{each.topic}-{each.partition} from offset {each.first} on is not proven: {each.reason}")
    return left


def move_step(opened: Opened, order: FailoverOrder, progress: Progress = SILENT) -> list[GroupOffset]:
    """Move groups; what became of each position. Raises FreezeFirst, GroupsActive, GroupsDisplaced, GroupsNotRead, GroupsReadOn,
    OffsetsHeld, FlowBusy, FenceStuck."""
    _check_frozen(opened, order)
    catch_up_ledger(opened)
    rows = positions(opened, order)
    with (
        Journal.open(opened.flow, opened.ledger, "failover") as journal,
        leased(journal, new_window("failover-groups"), slots=1, frozen_too=True) as granted,
    ):
        fence_around(granted, 1)  # an undo may be about to open the flow
        journal.catch_up()
        _check_frozen(opened, order)
        done = move_groups(MappingWriter.of(granted), rows)
        if wrong := displaced(granted.journal, rows, done):
            raise GroupsDisplaced(opened.flow.name, tuple(wrong))
        if order.way == "planned":
            check_still(opened.flow, rows, positions(opened, order))
    for each in done:
        if each.reason:
            progress.line(f"{each.group} in {each.topic}-{each.partition} was left: {each.reason}")
    return done


def positions(opened: Opened, order: FailoverOrder) -> list[GroupPosition]:
    """The positions of the groups that are moved, of all that was not moved by its name before. Disaster: as they were last seen.
    Raises OffsetsHeld."""
    if order.way == "disaster":
        with Journal.open(opened.flow, opened.ledger, "failover") as journal:
            return _ours(journal, rows_as_last_seen(journal)[0])
    with Mirror.open(opened.flow, opened.ledger, "failover") as mirror:
        back = caught_up_reverse(mirror.source, opened.flow, opened.ledger)
        brought = {each.remote_topic for each in back.last_mappings().values()} if back else ()
        own = (topic for topic, _ in opened.ledger.state().known)
        return _ours(mirror, group_positions(mirror, stable={*own, *brought}))


def _not_ready(opened: Opened, order: FailoverOrder) -> list[str]:
    """Return the positions that would not resume at the very next record, or not be moved there, in words, one each."""
    rows = positions(opened, order)
    with Journal.open(opened.flow, opened.ledger, "failover") as journal:
        at = committed_offsets(journal.target, {row.group for row in rows})
        reasons = stays(journal, rows, list_groups(journal.target), at)
    left = [(row, why) for row, why in zip(rows, reasons, strict=True) if why and isinstance(row.found, Translated)]
    return not_exact(rows) + [f"{row.group} in {row.key} at {row.committed.offset}: {why}" for row, why in left]


def _ours(journal: Journal, rows: Sequence[GroupPosition]) -> list[GroupPosition]:
    apart = journal.index.owners().is_apart
    ours = [row for row in rows if row.found is not Reason.NOT_REPLICATED and not apart(row.topic)]
    return held_back(journal, ours)


def _check_frozen(opened: Opened, order: FailoverOrder) -> None:
    owners = owners_now(opened)
    if owners.shut is None:
        since = owners.records.keys() - owners.frozen.keys() if owners.whole else ()
        raise FreezeFirst(opened.flow.name, order.way, tuple(sorted(since)), order.anyway)

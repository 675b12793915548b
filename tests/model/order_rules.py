"""Whatever can be put back or taken away of procedures: each field is a rule; False puts back a fault that was, or would be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OrderRules:
    """The procedures as they are meant."""

    transaction: bool = True  # A8: owners are committed under an id that the next lease fences, and not appended
    looks_under_lease: bool = True  # a window of the reverse flow looks when it has taken the lease, and not before
    ends_before_unfreezing: bool = True  # what returns is ended before it is unfrozen
    fences_reverse: bool = True  # who finishes a return fences the reverse flow first
    checks_back: bool = (
        True  # who gives a return up looks whether the reverse flow's lease still holds after its end is written
    )
    only_named: bool = True  # A1: the end of a return, and what follows it, is of the topics that its order names
    apart: bool = True  # A1: an order for the flow leaves topics that another one has named
    groups_apart: bool = True  # a failover moves no group of such a topic, and its undo is not refused because of one
    looks_after_freezing: bool = True  # A7: what came between the last look and the freeze is looked for after it
    copies_no_block: bool = True  # A6: the ledger is read again after the ACLs
    reads_acls_again: bool = True  # and these after that: a block may have gone up and come down in between
    gate_checks: bool = True  # A9: who writes what is verified looks at his lease before
    newer_verdict_stays: bool = True  # and below one that he has not seen it counts for nothing
    verdict_has_seen: bool = (
        True  # A9: he may sleep after that: what he writes says what he had seen, and a reset since voids it
    )
    newest_counts: bool = True  # A10: of two ledgers' positions of a group the newer one counts, not the further
    reset_leaves_returns: bool = True  # A18: what returns is not begun again: its remote topic is the original one
    handback_fences: bool = True  # who hands back fences the slots of windows that sleep
    handback_refuses_returns: bool = True  # MirrorMaker 2 would copy what returns to where it came from
    fences_before_moving: bool = (
        True  # who moves groups after a failover fences first: an undo may be about to open the flow
    )
    frozen_under_lease: bool = (
        True  # who moves groups after a failover looks under his lease whether the flow is frozen
    )
    all_frozen: bool = True  # and every topic of it: another order may have unfrozen one by its name
    checks_after_moving: bool = True  # and whether the lease holds still, before he says that they are moved
    looks_for_forgotten: bool = (
        True  # and whether one that he has seen moved was put back before he writes where it stood
    )
    failovers_undo_looks_last: bool = True  # its undo looks whether they stand where they were put back to
    stays_the_first_ones: bool = True  # a group that a migration was about to move stays the migration's
    looks_where_they_stand: bool = (
        True  # and whether groups stand where they were moved to: others move them without a lease
    )
    stand_back: bool = True  # who finishes a return looks whether groups stand where they were moved to
    rows_once_more: bool = True  # and whether groups have read on where they come from
    moves_under_both: bool = True  # who moves groups back leases both flows, and looks again: another one may finish
    checks_both_leases: bool = True  # who undoes a failback looks at both leases before he puts groups back
    undo_looks_last: bool = (
        True  # who puts groups back looks, before he says so, whether they were moved again meanwhile
    )
    keeps_first: bool = True  # where they were, he writes again where they stood first
    return_first: bool = True  # a step of a failback of what is frozen and does not return is refused
    still_returned: bool = (
        True  # who finishes a return looks under his leases whether what he has seen has still returned
    )
    marks_positions: bool = True  # a cut-over writes, before it moves groups, where they stand on the target
    marks_each: bool = True  # it writes of each group that it is cut over: others of its move group may come later
    forgets_marks_first: bool = True  # an undo forgets that, and after it where groups stood
    carries_no_group_back: bool = True  # and moves no group back on the source: a synchronisation may have slept
    remembers_first: bool = True  # and after that not where they are by then
    remembers_again: bool = True  # it writes its moves again where an undo has forgotten them meanwhile
    opening_forgets: bool = True  # who opens what was frozen forgets where a failover has found groups
    sync_leaves_cut_over: bool = (
        True  # a group that was cut over is its people's: they may have set it back on the target
    )
    cut_over_looks_last: bool = True  # one that finds nothing left looks once more before it says so

"""The runbook of a migration."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.runbook import Asking, Runbook, Step, Undo, later, worded

if TYPE_CHECKING:
    from airmirror.config import Flow
    from airmirror.runbooks.failback.pair import Pair


def _step(
    name: str, does: str, title: str = "", text: str = "", of: Callable[[Flow], bool] = lambda flow: True, **more: Any
) -> Step[Pair, MoveOrder]:
    """A step; people are asked for it where it has a ``text`` for them."""
    asks: Asking[Pair, MoveOrder] = Asking("Do it", worded(text), later("migration.shown:before", name), of, title)
    return Step(name, does, later("migration.steps:take", name), asks if text else None, **more)


MIGRATION: Runbook[Pair, MoveOrder] = Runbook(
    name="migration",
    title="migrate",
    summary="Move a cluster's topics and clients to another one.",
    helps={
        "plan": "Take inventory of both clusters, propose what must move together, and say of every rule whether it is met."
        "\n\nNothing is written but the ledger.",
        "run": "Move a move group, consumers first: each step looks again and does what is left, so it can be run again. Without "
        "--yes it shows how far the move group is. Exit status: 0 the next step can be taken, 1 it can't, 2 bad input.",
        "rehearse": "Rehearse a migration while everything runs: each group's next record is read on both sides, the newest "
        "records are compared, rights are asked for. Both clusters are only read.",
    },
    order=MoveOrder,
    opens=later("failback.pair:opens_pair"),
    plan=later("migration.shown:planned"),
    look=later("migration.shown:before", ""),
    steps=(
        _step(
            "mirror",
            "waiting until all is mirrored",
            "create ACLs and quotas",
            "**Approve to create ACLs and quotas on {target}**, as they are named below; other clients there keep theirs.",
            lambda flow: flow.settings.sync_topic_acls_mode == "migrate",
        ),
        _step("check_groups", "looking at consumer groups", is_free=True),
        _step(
            "cut_over_consumers",
            "cutting consumers over",
            "cut over consumers",
            "**Approve, then stop all consumers of these groups on {source}**: their positions are written on {target} "
            "when they have gone. No group is rolled over member by member.",
        ),
        _step("reverse", "preparing the reverse flow"),
        _step(
            "cut_over_producers",
            "cutting producers over",
            "cut over producers",
            "**Approve, then stop all producers of these topics on {source}**: when the last record is verified on "
            "{target}, the topics are frozen for every window.",
        ),
        _step(
            "finish",
            "finishing the migration",
            "finish the migration",
            "**Approve to finish: undo is no longer possible afterwards.** Nothing is deleted.",
            apart=True,
            is_offered=True,
        ),
    ),
    reported=("cut_over_producers",),
    outcome=later("migration.shown:ended"),
    undo=Undo(
        help="Put a move group's consumer groups back, unfreeze its topics and unblock its producers, as long as producers have "
        "written nothing on the target; with a reverse flow also afterwards.",
        yes="Do it",
        text="**Approve** to take these steps back.",
        look=later("migration.undo:look"),
        do=later("migration.undo:undo"),
    ),
    rehearse=later("migration.rehearsal:rehearsed"),
    check=later("migration.steps:check_order"),
    without=lambda flow, order: () if order.goes_back(flow) else ("reverse",),
    part=lambda order: order.move,
    others=lambda pair: pair.others,
)

"""The runbook of a failback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.runbook import Asking, Runbook, Step, Undo, later, worded

if TYPE_CHECKING:
    from airmirror.runbooks.failback.pair import Pair


RESCUE = "**Approve to copy these records to topics of their own on {target}**; nothing else is written."
RETURN = (
    "**Approve to let records return**; applications keep running, and you are asked again before they are cut over."
)
CUT_OVER = "**Approve, then stop the applications on the target**: no application may write there any more."

FAILBACK: Runbook[Pair, FailbackOrder] = Runbook(
    name="failback",
    title="fail back",
    summary="Fail back to the source of a flow, when it is there again.",
    helps={
        "plan": "Show what diverged since a failover: records of the source without a copy, records written on the target "
        "since.\n\nBoth clusters are read; nothing is written but the ledger.",
        "run": "Fail back to the source: what was written on the target since returns by the reverse flow, groups "
        "are moved back, the flow is unfrozen. Killed and run again, it does what is left. Without --yes it shows where "
        "records would begin to return.\n\nThe step *rescue* copies records that are not replicated to "
        "<remote topic>.rescued.<date> on the target, with headers of their origin. The step *return* lets records "
        "return while applications run; cut over in another run. Exit status: 0 nothing is left, 1 something is, 2 bad input.",
    },
    order=FailbackOrder,
    opens=later("failback.pair:opens_pair"),
    plan=later("failback.shown:planned"),
    look=later("failback.shown:looked"),
    steps=(
        Step(
            "rescue",
            "rescuing what was not replicated",
            later("failback.rescue:rescue_step"),
            Asking("Rescue them", worded(RESCUE), later("failback.shown:to_be_rescued")),
            leaves=bool,
            apart=True,
        ),
        Step(
            "return",
            "letting records return",
            later("failback.steps:return_step"),
            Asking("Let records return", worded(RETURN)),
        ),
        Step(
            "drain",
            "draining what returns",
            later("failback.steps:drain_step"),
            Asking("Cut over", worded(CUT_OVER), later("failback.shown:left_to_return")),
        ),
        Step("end_return", "ending the return", later("failback.steps:end_step")),
        Step(
            "move_groups", "moving consumer groups", later("failback.steps:move_step"), leaves=later("moving:are_left")
        ),
        Step("unfreeze", "unfreezing the flow", later("failback.steps:unfreeze_step")),
    ),
    reported=("move_groups", "unfreeze"),
    outcome=later("failback.shown:ended"),
    undo=Undo(
        help="End a failback that is not over: nothing returns any more, groups go back to where they stood on the source, and "
        "the flow stays frozen. Possible while no group has consumed further there.",
        yes="End the failback",
        text="**Approve**: nothing of these topics returns any more, and they stay frozen.",
        look=later("failback.undo:look"),
        do=later("failback.undo:undo"),
    ),
    over=later("failback.steps:nothing_left"),
    others=lambda pair: pair.others,
)

"""The runbook of a failover."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airmirror.runbooks.failover.order import FailoverOrder
from airmirror.runbooks.runbook import Asking, Runbook, Step, Undo, later, opens_flow

if TYPE_CHECKING:
    from airmirror.config import Flow
    from airmirror.flows.prepare import Opened


def _asks(flow: Flow, order: FailoverOrder) -> str:
    if order.way == "planned":
        return "**Approve, then stop the source's producers and consumers**; nothing is frozen before all is verified."
    return "**Approve to freeze the flow** and to move groups to what the target alone can prove."


FAILOVER: Runbook[Opened, FailoverOrder] = Runbook(
    name="failover",
    title="fail over",
    summary="Fail over to the target of a flow.",
    helps={
        "plan": "Show what a failover would mean now: what is replicated, where groups resume, what is missing. Also while the "
        "source is gone.\n\nNothing is written but the ledger.",
        "run": "Fail over to the target: the flow is frozen, so that no window writes there any more, and groups are moved. "
        "Killed and run again, it does what is left. Without --yes it shows the plan, and ends as that does. Exit status: 0 "
        "nothing is missing, 1 something is, 2 bad input.",
        "rehearse": "Rehearse a failover while everything runs: each group's next record is read on both sides, the newest "
        "records are compared, rights are asked for. Both clusters are only read.",
    },
    order=FailoverOrder,
    opens=opens_flow,
    plan=later("failover.shown:planned"),
    look=later("failover.shown:planned"),
    steps=(
        Step("drain", "draining the source", later("failover.steps:drain_step"), Asking("Fail over", _asks)),
        Step("freeze", "freezing the flow", later("failover.steps:freeze_step")),
        Step("judge", "judging what is committed", later("failover.steps:judge_step"), leaves=bool),
        Step(
            "move_groups", "moving consumer groups", later("failover.steps:move_step"), leaves=later("moving:are_left")
        ),
    ),
    reported=("judge", "move_groups"),
    outcome=later("failover.shown:ended"),
    undo=Undo(
        help="Put groups back where they were before a failover, and unfreeze the flow, unless applications worked there since.",
        yes="Take it back",
        text="**Approve** to unfreeze the flow; groups go back as follows.",
        look=later("failover.undo:look"),
        do=later("failover.undo:undo"),
    ),
    rehearse=later("rehearsal.rehearse:rehearsed"),
    check=later("failover.steps:check_way"),
    without=lambda flow, order: ("judge",) if order.way == "planned" else ("drain",),
)

"""The runbooks of a take-over from MirrorMaker 2, and of a hand-back to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airmirror.runbooks.runbook import Asking, Runbook, Step, later, opens_flow, worded
from airmirror.runbooks.takeover.order import HandbackOrder, TakeoverOrder

if TYPE_CHECKING:
    from airmirror.flows.prepare import Opened


STOP = "**Approve, then stop MirrorMaker 2**; nothing is taken over before it is stopped."
HISTORY = (
    "**Approve to write what the comparison finds** into the flow's mapping records; the copies stay as they are, and "
    "applications need not stop."
)
WRITE = "**Approve when the connector is stopped**: its progress is written into the topic {order.into!r} on {target}."

TAKEOVER: Runbook[Opened, TakeoverOrder] = Runbook(
    name="takeover",
    title="take over from MirrorMaker 2",
    summary="From MirrorMaker 2 to Airmirror, in the same topics.",
    helps={
        "plan": "Look at a MirrorMaker 2, running or not, and show what a take-over would find; nothing is written.",
        "run": "Wait until MirrorMaker 2 is stopped, then continue after its copies, also those since a hand-back; the next "
        "window copies what comes. Exit status 1: a partition could not be taken over, or compared.\n\nThe step *history* "
        "compares what MirrorMaker 2 had copied before the take-over with the source, record by record, so that positions "
        "there become exact too, and lists what it has copied twice.",
    },
    order=TakeoverOrder,
    opens=opens_flow,
    plan=later("takeover.shown:planned"),
    look=later("takeover.shown:planned"),
    steps=(
        Step(
            "take_over",
            "waiting until MirrorMaker 2 is stopped",
            later("takeover.copies:take_over"),
            Asking("Take over", worded(STOP)),
            leaves=lambda rows: any(row.error is not None for row in rows),
        ),
        Step(
            "history",
            "comparing what MirrorMaker 2 had copied",
            later("takeover.exact:history_step"),
            Asking("Write it", worded(HISTORY), later("takeover.shown:compared")),
            leaves=lambda rows: any(row.needs_somebody for row in rows),
            apart=True,
        ),
    ),
    reported=("take_over",),
    outcome=later("takeover.shown:ended"),
)


HANDBACK: Runbook[Opened, HandbackOrder] = Runbook(
    name="handback",
    title="hand back to MirrorMaker 2",
    summary="Back from Airmirror to MirrorMaker 2, in the same topics. First pause replicate.… and audit.… of the flow.",
    helps={
        "plan": "Show where MirrorMaker 2 would continue. A dedicated one needs nothing else: its progress is up to date. Once "
        "it runs, --check compares its first records with the source's, and ends with 1 unless it resumed at the very next one.",
        "run": "Write the progress of a connector on Connect into its workers' topic, while it is stopped; then the offset syncs "
        "and checkpoints that are due. Exit status 1: something is not verified, or a task after it failed.",
    },
    order=HandbackOrder,
    opens=opens_flow,
    plan=later("takeover.handback_shown:planned"),
    look=later("takeover.handback_shown:looked"),
    steps=(
        Step(
            "write",
            "writing the connector's progress",
            later("takeover.handback:write_offsets"),
            Asking("Hand back", worded(WRITE)),
        ),
    ),
    reported=("write",),
    outcome=later("takeover.handback_shown:ended"),
    over=later("takeover.handback:nothing_to_write"),
)

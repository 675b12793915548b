"""The DAG ``takeover.<source>.<target>``: a person approves what a take-over from MirrorMaker 2 would do; then it is done."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG

from airmirror.config import Flow
from airmirror.on_airflow.dags.common import TRIGGERING, new_dag, tags
from airmirror.on_airflow.dags.people import ApprovedStep, AsksPeople, respondents
from airmirror.on_airflow.dags.replicate import dag_id as replicate_id
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.pausing import dag_is_paused
from airmirror.runbooks.takeover.order import TakeoverOrder

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airmirror.flows.selection import Selection
    from airmirror.on_airflow.question import Question

log = logging.getLogger(__name__)

PLAN, RUN, FIRST = "plan", "take_over", "first_window"
TAKE_OVER, LEAVE = "Take over", "Leave it"
WAIT_SECONDS = 900.0  # for MirrorMaker 2 to be stopped, of one attempt
DOC = """
Takes **{flow}** over from MirrorMaker 2, in the same topics, as `airmirror takeover` does. Run it while MirrorMaker 2 still runs,
and again after each hand-back. **Leave this DAG switched on**: it runs only when it is triggered.

1. `plan` looks at MirrorMaker 2 and both clusters, and asks under *Required Actions* whether to take over. Nothing is written.
2. `take_over` waits until MirrorMaker 2 is really stopped: **stop it once you have approved**. While it is not, the task names
   who still writes, and tries again. Then every partition continues after MirrorMaker 2's copies; it fails where one can't.
3. `first_window` starts a run of `replicate.{source}.{target}`, which copies what comes after. Switch that DAG on.
"""


class PlanTakeOver(AsksPeople):
    """Asks whether to do what a take-over would do, as both clusters have it now."""

    def ask(self, context: Context) -> Question:
        from airmirror.on_airflow.tasks.takeover import ask

        return ask(deployment(), self.flow)


class TakeOver(ApprovedStep):
    """Waits until MirrorMaker 2 is stopped, and takes over what was approved; skipped where it was not."""

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.takeover import take_over

        by = self.approved(context, PLAN, TAKE_OVER).by
        order = TakeoverOrder(reason="approved in Airflow", by=by, wait=WAIT_SECONDS)
        take_over(deployment(), self.flow, order, selection)


class FirstWindow(TriggerDagRunOperator):
    """Starts a run that copies what comes after."""

    template_fields = TRIGGERING

    def execute(self, context: Context) -> None:
        if dag_is_paused(self.trigger_dag_id):
            log.warning("%s is paused, so that nothing is copied: switch it on.", self.trigger_dag_id)
        super().execute(context)


def takeover_id(flow: Flow) -> str:
    return f"takeover.{flow.source.alias}.{flow.target.alias}"


def takeover_dag(flow: Flow) -> DAG:
    """The take-over of a flow."""
    source, target = flow.source.alias, flow.target.alias
    with new_dag(
        takeover_id(flow),
        None,
        is_paused_upon_creation=False,
        description=f"Leave it on: asks an operator, then takes {flow.name} over from MirrorMaker 2.",
        doc_md=DOC.format(flow=flow.name, source=source, target=target),
        tags=tags(flow),
    ) as dag:
        plan = PlanTakeOver(
            task_id=PLAN,
            flow=flow.name,
            subject=f"{flow.name}: take over from MirrorMaker 2?",
            options=[TAKE_OVER, LEAVE],
            assigned_users=respondents(flow),
        )
        limit = timedelta(seconds=WAIT_SECONDS) + timedelta(hours=1)
        run = TakeOver(task_id=RUN, flow=flow.name, max_active_tis_per_dag=1, execution_timeout=limit)
        plan >> run >> FirstWindow(task_id=FIRST, trigger_dag_id=replicate_id(flow), retries=0)
    return dag

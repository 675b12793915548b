"""A take-over as tasks of ``operate.<source>.<target>``: a person approves what it would do; then it is done."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator

from airmirror.config import Flow
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

    def execute(self, context: Context) -> None:
        if dag_is_paused(self.trigger_dag_id):
            log.warning("%s is paused, so that nothing is copied: switch it on.", self.trigger_dag_id)
        super().execute(context)


def takeover_tasks(flow: Flow) -> dict[str, tuple[str, ...]]:
    """Make the tasks; those of each verb."""
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
    return {"run": (PLAN, RUN, FIRST)}

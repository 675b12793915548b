"""The people of a question under *Required Actions*: what they are asked, who may answer, and the steps that they approve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowSkipException

from airmirror.config import Flow
from airmirror.on_airflow.dags.choosing import Choose
from airmirror.on_airflow.dags.forms import check_conf
from airmirror.on_airflow.dags.operators import FlowOperator
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.question import Question
from airmirror.on_airflow.retries import BY_ERROR

if TYPE_CHECKING:
    from airmirror.on_airflow.tasks.approvals import Approval


class AsksPeople(HITLOperator):
    """Asks about a flow, as things are when it runs; of a dry run, it tells the question in its log and asks nobody."""

    template_fields = ()
    reads: tuple[str, ...] = ()  # of the run's configuration, besides the form's fields

    def __init__(self, *, flow: str, **arguments: Any) -> None:
        super().__init__(**BY_ERROR, **arguments)
        self.flow = flow

    def ask(self, context: Context) -> Question:
        """Return the question. Raises AirmirrorError."""
        raise NotImplementedError

    def scope(self, context: Context) -> str:
        """Return what an answer takes the place of other runs' in: all that is asked about the flow."""
        return ""

    @property
    def users(self) -> set[str]:
        """The users who may answer, by their ids; none: all who may answer in Airflow."""
        given = self.assigned_users or []
        return {user["id"] for user in ([given] if isinstance(given, dict) else given)}

    def execute(self, context: Context) -> None:
        from airmirror.on_airflow.tasks.approvals import note_asked

        check_conf(self, context, self.reads)
        check_run(self, context)
        asked = self.ask(context)
        self.subject, self.body = asked.subject, asked.body
        if context["params"].get("dry_run"):
            self.log.info("%s\n\n%s", self.subject, self.body)
            raise AirflowSkipException("a dry run")
        is_shown = self.shown(context) == self.body
        if not is_shown:
            again = "Airflow shows the question as this run has asked it first. As things are now: %s\n\n%s"
            self.log.warning(again, self.subject, self.body)
        note_asked(
            deployment(),
            self.flow,
            context,
            question=self.task_id,
            scope=self.scope(context),
            shown=asked.about,
            is_shown=is_shown or asked.about is None,  # then an answer is for what the run was triggered with
        )
        super().execute(context)

    def shown(self, context: Context) -> str | None:
        """Let Airflow keep the question, as it is asked, and return the text that it shows: the first one of this run. Airflow's
        own function for this drops the answer."""
        from airflow.sdk.execution_time.comms import CreateHITLDetailPayload, HITLDetailRequestResult
        from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS

        question = {
            "ti_id": context["task_instance"].id,
            "options": self.options,
            "subject": self.subject,
            "body": self.body,
            "params": self.serialized_params,
            "assigned_users": self.assigned_users or [],
        }
        kept = SUPERVISOR_COMMS.send(msg=CreateHITLDetailPayload.model_validate(question))
        return kept.body if isinstance(kept, HITLDetailRequestResult) else None

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        from airmirror.on_airflow.tasks.approvals import note_answered

        given = super().execute_complete(context, event)
        note_answered(deployment(), self.flow, context, self.task_id, given, self.users)
        return given


class RunbookOperator(FlowOperator):
    """A task of a runbook's group: of runs for that runbook, by whoever may start it."""

    @property
    def step(self) -> str:
        """The task's name in its group."""
        return self.task_id.rpartition(".")[2]

    def execute(self, context: Context) -> Any:
        check_run(self, context)
        return super().execute(context)


class ApprovedStep(RunbookOperator):
    """A step that people approve: its question is a task of the same group of the same DAG."""

    def answer(self, context: Context, question: str) -> Approval:
        """Return what was answered. Raises NotApproved."""
        from airmirror.on_airflow.tasks.approvals import approval

        name = self.task_id.removesuffix(self.step) + question
        asks = self.dag.get_task(name)
        assert isinstance(asks, AsksPeople)
        return approval(deployment(), self.flow, context, name, asks.users)

    def approved(self, context: Context, question: str, option: str) -> Approval:
        """Return the answer where it is this one; skipped where it is another. Raises NotApproved."""
        given = self.answer(context, question)
        if given.option != option:
            raise AirflowSkipException("the answer is another one")
        return given


def check_run(task: BaseOperator, context: Context) -> None:
    """Skip a task of another runbook than the run is for, which was cleared. Raises RunbookNotAllowed."""
    runbook = task.task_id.rpartition(".")[0]
    if runbook and context["params"]["runbook"] != runbook:
        raise AirflowSkipException(f"the run is for {context['params']['runbook']}")
    if runbook:
        choose = task.dag.get_task("choose")
        assert isinstance(choose, Choose)
        choose.check(context)


def respondents(flow: Flow) -> list[dict[str, str]] | None:
    """The users who may answer, by their ids in Airflow (``decide.users``); None: all who may answer there."""
    return [{"id": user, "name": user} for user in flow.settings.decide_users if user] or None

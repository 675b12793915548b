"""The people of a question under *Required Actions*: what they are asked, who may answer, and who has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk.exceptions import AirflowSkipException

from airmirror.config import Flow
from airmirror.on_airflow.retries import ByError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airmirror.on_airflow.question import Question


class AsksPeople(HITLOperator):
    """Asks about a flow, as things are when it runs; of a dry run, it tells the question in its log and asks nobody."""

    template_fields = ()

    def __init__(self, *, flow: str, **arguments: Any) -> None:
        super().__init__(retry_policy=ByError(), **arguments)
        self.flow = flow

    def ask(self, context: Context) -> Question:
        """Return the question. Raises AirmirrorError."""
        raise NotImplementedError

    def execute(self, context: Context) -> None:
        asked = self.ask(context)
        self.subject, self.body = asked.subject, asked.body
        if context["params"].get("dry_run"):
            self.log.info("%s\n\n%s", self.subject, self.body)
            raise AirflowSkipException("a dry run")
        super().execute(context)


def respondents(flow: Flow) -> list[dict[str, str]] | None:
    """The users who may answer, by their ids in Airflow (``decide.users``); None: all who may answer there."""
    return [{"id": user, "name": user} for user in flow.settings.decide_users if user] or None


def answered_by(given: Mapping[str, Any]) -> str:
    """The user who has answered, from what the task that asked has returned."""
    user = given.get("responded_by_user") or {}
    return str(user.get("name") or user.get("id") or "a user of Airflow")

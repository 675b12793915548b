"""The first task of a DAG whose runs do different things: it skips the tasks of the others, without a process for each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from airflow.sdk import BaseOperator, Context

from airmirror.on_airflow.dags.forms import check_conf
from airmirror.on_airflow.dags.operators import skip
from airmirror.on_airflow.retries import BY_ERROR

WHAT = "what"  # the field of a form


class Choose(BaseOperator):
    """Lets the tasks run that the run is for. ``choices``: the tasks of each thing that a run may do."""

    ui_color = "#e8f1fa"

    def __init__(self, *, choices: Mapping[str, Collection[str]], **arguments: Any) -> None:
        super().__init__(**BY_ERROR, **arguments)
        self.choices = choices

    def chosen(self, context: Context) -> Collection[str]:
        return (context["params"][WHAT],)

    def wanted(self, context: Context) -> set[str]:
        chosen = self.chosen(context)
        self.log.info("The run is for: %s.", ", ".join(chosen) or "nothing")
        return {task for each in chosen for task in self.choices[each]}

    def check(self, context: Context) -> None:
        """Raise what keeps the run from doing it."""

    def execute(self, context: Context) -> None:
        check_conf(self, context)
        every = {task for tasks in self.choices.values() for task in tasks}
        skip(every - self.wanted(context))

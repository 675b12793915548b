"""The DAG ``rehearse.<source>.<target>``: a failover and each migration, rehearsed on schedules; what would go wrong fails."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Context, Param

from airmirror.config import Flow
from airmirror.flows.selection import Selection
from airmirror.on_airflow.dags.choosing import WHAT, Choose
from airmirror.on_airflow.dags.common import AT_ONCE, Reports, id_of, new_dag, tags
from airmirror.on_airflow.dags.forms import choice_field
from airmirror.on_airflow.dags.notifications import callbacks
from airmirror.on_airflow.dags.operators import FlowOperator, window_id
from airmirror.on_airflow.dags.runbooks import AnyRunbook
from airmirror.on_airflow.dags.schedules import fires, union
from airmirror.on_airflow.deployment import deployment
from airmirror.runbooks.failover.order import FailoverOrder
from airmirror.runbooks.failover.runbook import FAILOVER
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.migration.runbook import MIGRATION
from airmirror.runbooks.runbook import Order

EVERYTHING = "everything"
LONGEST = timedelta(hours=6)
DOC = """
Rehearses, while everything runs, what may have to be done with **{flow}** one day: `failover` a failover to {target}, as
`airmirror failover rehearse` does (docs/disaster-recovery.md), and `move_…` the migration of each move group, as `airmirror
migration rehearse` does (docs/migration.md). The next record of each group is read on both sides, and the newest records of
{target} are compared with those of {source}. Both clusters are only read.

The button *Report* of a task leads to its page. A task fails where what it rehearses would go wrong, also where {source} does not
answer; `on.failure.notifier` tells of the first of several in a row. `failover.rehearsal.schedule` and `move.rehearsal.schedule`
say when each of them runs.
"""


class Rehearse(Reports, FlowOperator):
    """A runbook rehearsed, as an order wants it; its report."""

    def __init__(self, *, runbook: AnyRunbook, order: Order, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.runbook, self.order = runbook, order

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.runbooks import RunbookRequest, rehearse

        rehearse(RunbookRequest(deployment(), self.flow, self.runbook, self.order), window_id(context), self.show)


class ChooseRehearsals(Choose):
    """Lets those run whose time has come, or that the form chooses. ``schedules``: by task, of those that have one."""

    def __init__(self, *, schedules: Mapping[str, str], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.schedules = schedules

    def chosen(self, context: Context) -> Collection[str]:
        what, run = context["params"][WHAT], context["dag_run"]
        if what != EVERYTHING:
            return (what,)
        if run.run_type != "scheduled":
            return tuple(self.choices)
        is_one = len(set(self.schedules.values())) == 1  # every run is its
        return [task for task, value in self.schedules.items() if is_one or fires(value, run.run_after)]


def rehearsal_schedules(flow: Flow) -> dict[str, str]:
    """The schedules of a flow's rehearsals by their keys, of those that are set."""
    moves = flow.settings.move_rehearsal_schedule if flow.moves else None
    found = {"failover.rehearsal.schedule": flow.settings.failover_rehearsal_schedule, "move.rehearsal.schedule": moves}
    return {key: value for key, value in found.items() if value}


def rehearsal_dag(flow: Flow) -> DAG:
    """The rehearsals of a flow. Raises BadSchedule, TwoSchedules, BadNotifier."""
    schedules, moves = rehearsal_schedules(flow), [_task_of(move.name) for move in flow.moves]
    begins = "Switch this on" if schedules else "Leave it on, it runs only when triggered"
    with new_dag(
        id_of("rehearse", flow),
        union(flow.name, schedules),
        max_active_runs=AT_ONCE,
        description=f"{begins}: rehearses failover and migrations of {flow.name}; production is only read."[:110],
        doc_md=DOC.format(flow=flow.name, source=flow.source.alias, target=flow.target.alias),
        tags=tags(flow),
        params=_form([FAILOVER.name, *moves]) if moves else None,
    ) as dag:
        tasks = [Rehearse(runbook=FAILOVER, order=FailoverOrder(), **_arguments(flow, FAILOVER.name))]
        tasks += [
            Rehearse(runbook=MIGRATION, order=MoveOrder(move=move.name), **_arguments(flow, _task_of(move.name)))
            for move in flow.moves
        ]
        if moves:
            by_key = {"failover.rehearsal.schedule": [FAILOVER.name], "move.rehearsal.schedule": moves}
            by_task = {task: value for key, value in schedules.items() for task in by_key[key]}
            alone = {task.task_id: (task.task_id,) for task in tasks}
            ChooseRehearsals(task_id="choose", choices=alone, schedules=by_task) >> tasks
    return dag


def _task_of(move: str) -> str:
    return f"move_{move}"


def _arguments(flow: Flow, task: str) -> dict[str, Any]:
    """A task's, each of which is an incident of its own where it fails."""
    always = {"flow": flow.name, "max_active_tis_per_dag": 1, "execution_timeout": LONGEST}
    return {"task_id": task, **always, **callbacks(flow, f"rehearse {task}")}


def _form(tasks: list[str]) -> dict[str, Param]:
    said = "*everything*; of a scheduled run, what its time has come for."
    return {WHAT: choice_field(EVERYTHING, [EVERYTHING, *tasks], "What", said)}

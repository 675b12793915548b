"""The DAG ``operate.<source>.<target>``: its form chooses a runbook; people approve it, and it is carried out step by step."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from airflow.sdk import DAG, Context, Param, TaskGroup

from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.on_airflow.dags.choosing import Choose
from airmirror.on_airflow.dags.common import AT_ONCE, id_of, new_dag, tags
from airmirror.on_airflow.dags.forms import choice_field, dry_run_field, texts_field
from airmirror.on_airflow.dags.runbooks import PLAN, VERBS, AnyRunbook, TakeStep, fields_of, order_of, tasks_of, told
from airmirror.runbooks.failback.runbook import FAILBACK
from airmirror.runbooks.failover.runbook import FAILOVER
from airmirror.runbooks.migration.runbook import MIGRATION
from airmirror.runbooks.takeover.runbook import HANDBACK, TAKEOVER

DOC = """
Carries out what people have to decide about **{flow}**. **Leave this DAG switched on**: it runs only when it is triggered.
*Trigger* asks for the runbook, the verb, the reason, and a dry run, which only shows what would be done. The tasks of every
other runbook are skipped. Before anything is written, a task asks under *Required Actions*; every task reads again what is so
now: clear any of them. An answer counts for a day. The button *Report* of a task leads to its page. Who may start a runbook:
`<runbook>.users`.
"""


RUNBOOKS: dict[str, AnyRunbook] = {each.name: each for each in (FAILOVER, FAILBACK, MIGRATION, TAKEOVER, HANDBACK)}


class RunbookNotAllowed(AirmirrorError):
    """A run of a runbook by a user who may not start it. Nothing was done."""

    flow: str
    runbook: str
    user: str

    def __str__(self) -> str:
        who = self.user or "an unknown user"
        return (
            f"flow {self.flow!r}: {who} has started a {self.runbook}, who is none of {self.runbook}.users: one of them is to, "
            "or name them there"
        )


class NoSuchVerb(AirmirrorError):
    """A run for what its runbook does not have."""

    flow: str
    runbook: str
    verb: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        return f"flow {self.flow!r}: {self.runbook} has no {self.verb!r}: start a run with {' or '.join(self.known)}"


class ChooseRunbook(Choose):
    """Lets the tasks run of the form's runbook and verb, where whoever has started the run may. ``users``: by runbook, who may;
    none: whoever may trigger the DAG."""

    def __init__(self, *, flow: Flow, users: Mapping[str, Collection[str]], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.flow, self.users = flow, users

    def wanted(self, context: Context) -> set[str]:
        self.check(context)
        given = context["params"]
        name, verb = given["runbook"], given["verb"]
        if f"{name} {verb}" not in self.choices:
            known = (each.partition(" ") for each in self.choices)
            raise NoSuchVerb(self.flow.name, name, verb, tuple(of for book, _, of in known if book == name))
        runbook = RUNBOOKS[name]
        if verb != "run":
            return {f"{name}.{PLAN}"} if given["dry_run"] else {*self.choices[f"{name} {verb}"]}
        from airmirror.on_airflow.tasks.runbooks import steps_of

        steps = steps_of(runbook, self.flow, order_of(runbook, context), given["steps"] or ())
        if given["dry_run"]:
            return {f"{name}.{PLAN}"}
        taken = [self.dag.get_task(f"{name}.{step}") for step in steps]
        asked = {f"{name}.{task.asked}" for task in taken if isinstance(task, TakeStep) and task.asked}
        return asked | {task.task_id for task in taken}

    def check(self, context: Context) -> None:
        """Raise RunbookNotAllowed. Every task of a runbook asks it again: whoever may trigger may mark this one as done."""
        book, user = context["params"]["runbook"], context["dag_run"].triggering_user_name or ""
        if (users := self.users[book]) and user not in users:
            raise RunbookNotAllowed(self.flow.name, book, user)


def operate_dag(flow: Flow, *, has_reverse: bool) -> DAG:
    """The runbooks of a flow. ``has_reverse``: there is a reverse flow."""
    books = {name: book for name, book in RUNBOOKS.items() if has_reverse or name != "failback"}
    with new_dag(
        id_of("operate", flow),
        None,
        max_active_runs=AT_ONCE,
        description=f"Leave it on: {', '.join(books)} of {flow.name}, each step approved by people."[:110],
        doc_md=DOC.format(flow=flow.name),
        tags=tags(flow),
        params=_form(flow, books),
    ) as dag:
        choices, groups = dict[str, tuple[str, ...]](), list[TaskGroup]()
        for name, book in books.items():
            does = told(book)
            with TaskGroup(name, tooltip=book.summary) as group:
                verbs = tasks_of(book, flow)
            choices |= {f"{name} {verb}": tuple(map(group.child_id, tasks)) for verb, tasks in verbs.items()}
            groups.append(group)
            dag.doc_md = f"{dag.doc_md}\n### {name}\n\n{does}\n"
        users = {name: getattr(flow.settings, f"{name}_users") for name in books}
        ChooseRunbook(task_id="choose", flow=flow, users=users, choices=choices) >> groups
    return dag


def _form(flow: Flow, books: Mapping[str, AnyRunbook]) -> dict[str, Param]:
    """The fields of all runbooks; one that several have is the same in each."""
    fields, owners = dict[str, Param](), dict[str, list[str]]()
    for name, book in books.items():
        for key, field in fields_of(book, flow).items():
            known = fields.setdefault(key, field)
            assert (known.schema["type"], known.value) == (field.schema["type"], field.value), key
            owners.setdefault(key, []).append(name)
    for key, names in owners.items():
        fields[key].schema["section"] = " and ".join(names).capitalize()
    return {
        "runbook": Param(type="string", enum=[*books], title="Runbook"),
        "verb": choice_field(
            "run",
            VERBS,
            "Verb",
            "*plan*: show what it would mean. *run*: carry it out. *undo*: take the last one back.",
        ),
        "reason": Param("", type="string", minLength=1, title="Reason", description_md="Why; it is kept."),
        "dry_run": dry_run_field("Show what would be done, without a question; nothing is written."),
        "steps": texts_field("Steps", "*run*: only these. Empty: those that it usually takes."),
        **fields,
    }

"""The DAG ``decide.<source>.<target>``: an operator decides what becomes of partitions that the gate holds."""

from __future__ import annotations

from airflow.sdk import DAG, Context, Param
from airflow.sdk.exceptions import AirflowSkipException

from airmirror.config import Flow
from airmirror.flows.selection import Selection
from airmirror.on_airflow.dags.assets import add_events, alias_of
from airmirror.on_airflow.dags.common import ASK, AT_ONCE, id_of, new_dag, tags
from airmirror.on_airflow.dags.operators import HELD, AskToDecide, push_held, window_id
from airmirror.on_airflow.dags.people import ApprovedStep, AsksPeople, respondents
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.question import KEEP, MOST_ASKED, OPTIONS, Question, options_table

DOC = """
Asks what becomes of partitions of **{flow}** that the gate holds: one run an incident, started by `replicate.{source}.{target}`.
The question is under *Required Actions*; until it is answered the partitions wait and the others continue. **Leave this DAG
switched on**: it runs only when there is something to decide.

{options}

`ask` reads what is held when it asks, and `carry_out` again when it acts: an answer is for what was shown, and only as long as
that is still held. A question is about at most {most} partitions: where these are kept held, `ask_about_rest` starts the run
that asks about the others. A run that an operator starts by hand asks about everything that is held; `held` in its
configuration, a list of `[topic, partition, last offset]`, narrows it down. `carry_out` fails where what was decided fails: the
next window's run asks again, in a run of its own, and so does whoever clears `ask`. Who decided, when and why is in the mapping
topic: `airmirror hold list --history`.
"""


class Ask(AsksPeople):
    """Asks about what the gate really holds, as the mapping topic has it now; skipped where it holds nothing."""

    reads = (HELD,)

    def ask(self, context: Context) -> Question:
        from airmirror.on_airflow.tasks.decide import ask

        conf = context["dag_run"].conf or {}
        asked = ask(deployment(), self.flow, conf.get(HELD), most=MOST_ASKED)
        if asked is None:
            raise AirflowSkipException("the gate holds nothing of this: there is nothing to decide")
        return asked

    def scope(self, context: Context) -> str:
        return str(context["run_id"])  # others are of other incidents, and what is not held any more is left alone


class CarryOut(ApprovedStep):
    """Does what was decided, after it is written down who has decided it."""

    reads = (HELD,)

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.decide import carry_out, rest

        given = self.answer(context, ASK)
        window, name = window_id(context, "decide"), f"{context['run_id']} of {given.at.isoformat()}"
        received = carry_out(deployment(), self.flow, window, given, name=name, selection=selection)
        add_events(context, self, received)
        # What is held stays the same incident: no window asks about what a full question had no place for.
        if given.option == KEEP and len(given.shown) >= MOST_ASKED:
            left = rest(deployment(), self.flow, context["dag_run"].conf or {}, given.shown)
            push_held(context["ti"], self.dag.dag_id, *left)


def decide_dag(flow: Flow) -> DAG:
    """The decisions of a flow. On from the start: a question that has to be switched on first reaches nobody."""
    source, target = flow.source.alias, flow.target.alias
    with new_dag(
        id_of("decide", flow),
        None,
        max_active_runs=AT_ONCE,
        description=f"Leave it on: asks an operator what becomes of partitions of {flow.name} that the gate holds.",
        doc_md=DOC.format(
            flow=flow.name, source=source, target=target, most=MOST_ASKED, options=options_table(source, target)
        ),
        tags=tags(flow),
    ) as dag:
        reason = Param(None, type=["null", "string"], title="Reason", description="Why, for those who find it later.")
        ask = Ask(
            task_id=ASK,
            flow=flow.name,
            subject=f"{flow.name}: partitions did not pass the gate",
            options=[option.name for option in OPTIONS],
            assigned_users=respondents(flow),
            params={"reason": reason},
        )
        carry_out = CarryOut(task_id="carry_out", flow=flow.name, outlets=[alias_of(flow)])
        ask >> carry_out >> AskToDecide(task_id="ask_about_rest", trigger_dag_id=dag.dag_id, found_by=carry_out.task_id)
    return dag

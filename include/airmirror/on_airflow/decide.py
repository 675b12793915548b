"""The DAG ``decide.<source>.<target>``: somebody decides what becomes of partitions that the gate holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import DAG, Param

from airmirror.config import Flow
from airmirror.on_airflow.decide_options import ACCEPT_LOSS, AGAIN, KEEP, LET_PASS, NEW_TOPIC, VERIFY_AGAIN
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.operators import FlowOperator, window_id
from airmirror.on_airflow.replicate import OWNER, RETRIES, RETRY_DELAY, START, decide_id, tags

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airmirror.flows.choice import Choice

ASK = "ask"
DOC = """
Asks what becomes of partitions of **{flow}** that the gate holds: one run an incident, started by `replicate.{source}.{target}`.
The question is under *Required Actions*; until it is answered the partitions wait and the others go on.

| answer | |
|---|---|
| Verify again | once the cause is mended: the gate reads the target anew |
| Let it pass | the range passes whatever the expectations say; not where records differ, are missing or not accounted for |
| Accept the loss | the records of the range that are not on {target} as they are on {source} are declared lost; \
what is equal counts, the range passes whatever the expectations say, and replication goes on behind it |
| Replicate again | the held partitions begin again at {source}'s first offset, behind what the remote topic holds |
| Replicate again into a new topic | the whole topic is replicated from its first offset into a new remote topic, \
`<remote topic>.2`, and goes on there; the old one stays as it is |
| Keep it held | nothing changes; `airmirror hold list` shows it |

`carry_out` does it, and fails where that fails. Who decided, when and why is in the segment topic:
`airmirror hold list --history`.
"""


class CarryOut(FlowOperator):
    """Does what was decided, after it is written down who has decided it."""

    def work(self, context: Context, choice: Choice) -> None:
        from airmirror.on_airflow.decide_work import Answer, carry_out

        given = context["ti"].xcom_pull(task_ids=ASK)
        conf = context["dag_run"].conf or {}
        user = given.get("responded_by_user") or {}
        answer = Answer(
            given["chosen_options"][0], str((given.get("params_input") or {}).get("reason") or ""),
            str(user.get("name") or user.get("id") or "somebody in Airflow"),
            f"{context['run_id']} of {given.get('responded_at')}",
        )  # fmt: skip
        carry_out(deployment(), self.flow, window_id(context, "decide"), conf.get("held") or [], answer, choice)


def decide_dag(flow: Flow) -> DAG:
    """The decisions of a flow."""
    source, target = flow.source.alias, flow.target.alias
    with DAG(
        decide_id(flow),
        schedule=None,
        start_date=START,
        catchup=False,
        max_active_runs=16,
        default_args={"owner": OWNER, "retries": RETRIES, "retry_delay": RETRY_DELAY},
        doc_md=DOC.format(flow=flow.name, source=source, target=target),
        tags=tags(flow),
    ) as dag:
        ask = HITLOperator(
            task_id=ASK,
            subject=f"{flow.name}: partitions did not pass the gate",
            body="```\n{{ dag_run.conf.get('what', 'This run was started by hand: there is nothing to decide.') }}\n```",
            options=[VERIFY_AGAIN, LET_PASS, ACCEPT_LOSS, AGAIN, NEW_TOPIC, KEEP],
            params={
                "reason": Param("", type="string", title="Reason", description_md="Why, for those who find it later.")
            },
            retries=0,
        )
        ask >> CarryOut(task_id="carry_out", flow=flow.name)
    return dag

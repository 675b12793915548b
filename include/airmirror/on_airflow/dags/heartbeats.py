"""The DAG ``heartbeats.<target>``: one task for each flow whose heartbeats the target takes, deferred nearly all the time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, BaseOperator, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airmirror.config import Flow
from airmirror.on_airflow.dags.common import new_dag
from airmirror.on_airflow.dags.schedules import timetable

SCHEDULE = "@hourly"
LONGEST = timedelta(hours=1, minutes=10)

DOC = """
Writes MirrorMaker 2's heartbeats to `heartbeats` on **{target}**, one task a flow. The flows that leave {target} replicate
them; on the other side they tell the end-to-end latency (`airmirror status`).

A task is deferred: it emits inside Airflow's triggerer, takes no worker's place, and ends with the hour, when the next run
begins. So switching the DAG off, and a new configuration, take effect within the hour; *Mark failed* stops it at once.
"""


class EmitHeartbeats(BaseOperator):
    """Heartbeats of one flow until the next full hour."""

    ui_color = "#fdeef0"

    def __init__(self, *, flow: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.flow = flow

    def execute(self, context: Context) -> None:
        from airmirror.on_airflow.triggers.heartbeats import HeartbeatTrigger

        self.defer(trigger=HeartbeatTrigger(self.flow), method_name="emitted", timeout=LONGEST)

    def emitted(self, context: Context, event: dict[str, Any]) -> None:
        """Tell what became of them. Fails where the target has taken none."""
        if "error" in event:
            raise AirflowFailException(event["error"])
        self.log.info("%d heartbeats written, %d were not.", event["taken"], event["failed"])
        if not event["taken"] and event["reason"]:
            raise AirflowException(event["reason"])


def dag_id(target: str) -> str:
    return f"heartbeats.{target}"


def heartbeats_dag(target: str, flows: Sequence[Flow]) -> DAG:
    """The DAG of a cluster, for the flows that emit heartbeats into it."""
    with new_dag(
        dag_id(target),
        timetable(dag_id(target), SCHEDULE),
        description=f"Switch this on to measure end-to-end latency: writes MirrorMaker 2's heartbeats to {target}; optional.",
        doc_md=DOC.format(target=target),
        tags=["heartbeats", f"target:{target}"],
    ) as dag:
        for flow in flows:
            EmitHeartbeats(task_id=f"from_{flow.source.alias}", flow=flow.name)
    return dag

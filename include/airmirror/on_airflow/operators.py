"""The tasks of a flow's DAG as operators. They are made at parse time, so what they do is loaded when they run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.exceptions import AirflowSkipException

from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.retries import ByError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airmirror.on_airflow.work import Choice

REPLICATE = "replicate_window"
CUT = "cut"
DATA_DOCS = "data_docs"


class DataDocsLink(BaseOperatorLink):
    """The button to the Data Docs of a task's judgement. Airflow asks for the address when the task has ended."""

    name = "Data Docs"

    @property
    def xcom_key(self) -> str:
        return DATA_DOCS

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        return str(getattr(operator, "data_docs", ""))


class FlowOperator(BaseOperator):
    """A task of one flow. Final errors fail at once, transient ones are retried."""

    ui_color = "#e8f1fa"

    def __init__(self, *, flow: str, **arguments: Any) -> None:
        super().__init__(retry_policy=ByError(), **arguments)
        self.flow = flow

    def execute(self, context: Context) -> Any:
        return self.work(context, choice(context))

    def work(self, context: Context, choice: Choice) -> Any:
        """What the task does. Raises AirmirrorError."""
        raise NotImplementedError


class SyncTopics(FlowOperator):
    """Remote topics and partitions exist; the gate's expectations make sense."""

    def work(self, context: Context, choice: Choice) -> None:
        from airmirror.on_airflow.work import sync_topics

        sync_topics(deployment(), self.flow, choice)


class ReplicateWindow(FlowOperator):
    """One window: planned, claimed, fenced, copied by Spark, committed; its id is the result. Not judged yet.

    When it is killed it interrupts its Spark job and fences its slots; nothing relies on code that runs in a slot.
    """

    def __init__(self, *, spark_conn_id: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.spark_conn_id = spark_conn_id
        self._on_kill: Callable[[], None] | None = None

    def work(self, context: Context, choice: Choice) -> None:
        from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook

        from airmirror.on_airflow.work import interrupt, replicate

        if choice.dry_run:
            raise AirflowSkipException("a dry run")
        window = window_id(context)
        task = context["ti"]
        task.xcom_push("return_value", window)  # before the work: what a failed window has committed is judged too
        url = SparkConnectHook(self.spark_conn_id).get_connection_url().rstrip("/")
        self._on_kill = lambda: interrupt(deployment(), self.flow, window, url, choice)
        result = replicate(deployment(), self.flow, window, url, choice)
        task.xcom_push(CUT, result.is_cut)

    def on_kill(self) -> None:
        if self._on_kill is not None:
            self._on_kill()


class VerifyWindow(FlowOperator):
    """The gate: what passes is advanced, what does not is held, and fails the task."""

    operator_extra_links = (DataDocsLink(),)
    data_docs = ""

    def work(self, context: Context, choice: Choice) -> None:
        from airmirror.on_airflow.work import verify

        if choice.dry_run:
            raise AirflowSkipException("a dry run")
        task = context["ti"]
        window = task.xcom_pull(task_ids=REPLICATE)
        # Tried or run again, the gate takes nobody's word and reads the target.
        trusted = {window} if window and task.try_number == 1 else set()
        page = verify(deployment(), self.flow, window_id(context, "verify"), trusted, choice)
        if page is not None:
            path = page.relative_to(deployment().data_docs.absolute())
            self.data_docs = f"/airmirror/data-docs/{quote(str(path))}"


class EmitOffsetSyncs(FlowOperator):
    """MirrorMaker 2's offset syncs, up to the verified offsets."""

    def work(self, context: Context, choice: Choice) -> None:
        from airmirror.on_airflow.work import emit_syncs

        if choice.dry_run:
            raise AirflowSkipException("a dry run")
        emit_syncs(deployment(), self.flow, window_id(context, "syncs"), choice)


class NextWindow(TriggerDagRunOperator):
    """Starts the next run at once where this one's window was cut by time or bytes."""

    def execute(self, context: Context) -> None:
        if not context["ti"].xcom_pull(task_ids=REPLICATE, key=CUT):
            raise AirflowSkipException("the window was not cut")
        super().execute(context)


def window_id(context: Context, purpose: str = "") -> str:
    """The run's id, the attempt, and what tells apart two starts of one attempt: each is a window of its own (B)."""
    start = f"{context['ti'].try_number}-{uuid4().hex[:4]}"
    return "#".join(filter(None, (str(context["run_id"]), purpose, start)))


def choice(context: Context) -> Choice:
    """What the trigger form was filled in with."""
    from airmirror.on_airflow.work import Choice

    given = context["params"]
    return Choice(
        topics=tuple(given["topics"] or ()),
        partitions=tuple(given["partitions"] or ()),
        verify=given["verify"],
        dry_run=bool(given["dry_run"]),
    )


def timeout(window_max_ms: int) -> timedelta:
    """How long ``replicate_window`` may take: the window, and what comes before and after its copy."""
    return timedelta(milliseconds=window_max_ms) + timedelta(minutes=5)

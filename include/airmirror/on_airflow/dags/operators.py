"""The tasks of a flow's DAG as operators. They are made at parse time, so what they do is loaded when they run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.providers.standard.triggers.temporal import TimeDeltaTrigger
from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowSkipException, DownstreamTasksSkipped

from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.flows.selection import Selection
from airmirror.on_airflow.dags.assets import add_events, lineage_of
from airmirror.on_airflow.dags.common import TRIGGERING, DataDocsLink, question_of
from airmirror.on_airflow.dags.forms import check_conf
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.pausing import PauseWatch, WindowPaused, dag_is_paused
from airmirror.on_airflow.retries import BY_ERROR

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from airmirror.on_airflow.tasks.spark import Windows
    from airmirror.on_airflow.tasks.window import Received


REPLICATE, IDLE, NEXT = "replicate_window", "idle", "next_window"
GROUP_TASKS = CHECKPOINTS, GROUPS = "emit_checkpoints", "sync_group_offsets"
VERIFY = "verify_window"
CUT, EMPTY, HELD, INCIDENT, PASSED = "cut", "empty", "held", "incident", "passed"


class FlowOperator(BaseOperator):
    """A task of one flow. Final errors fail at once, transient ones are retried. ``writes``: it is skipped in a dry run.

    ``reads``: what it reads of a run's configuration besides the form's fields.
    """

    ui_color = "#e8f1fa"
    writes = False
    reads: tuple[str, ...] = ()

    def __init__(self, *, flow: str, **arguments: Any) -> None:
        super().__init__(**BY_ERROR, **arguments)
        self.flow = flow

    def execute(self, context: Context) -> Any:
        try:
            check_conf(self, context, self.reads)
            chosen = selection(context)
            if self.writes and chosen.dry_run:
                raise AirflowSkipException("a dry run")
            return self.work(context, chosen)
        except AirmirrorError as error:
            raise error.with_traceback(None) from None  # raised on purpose: what it says is what counts

    def work(self, context: Context, selection: Selection) -> Any:
        """Do the task's work. Raises AirmirrorError."""
        raise NotImplementedError


class SyncTopics(FlowOperator):
    """Remote topics and partitions exist; the gate's expectations make sense."""

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.window import sync_topics

        sync_topics(deployment(), self.flow, selection)


class ReplicateWindow(FlowOperator):
    """One window: planned, leased, fenced, copied by Spark, committed; its id is the result. Not judged yet.

    When it is killed it interrupts its Spark job and fences its slots; nothing relies on code that runs in a slot.
    """

    writes = True

    def __init__(self, *, spark_conn_id: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.spark_conn_id = spark_conn_id
        self._on_kill: Callable[[], None] | None = None

    def work(self, context: Context, selection: Selection) -> None:
        window = window_id(context)
        task = context["ti"]
        task.xcom_push("return_value", window)  # before the work: what a failed window has committed is judged too
        windows = self.windows(context, window, selection)
        self._on_kill = windows.interrupt
        dag_id = str(context["dag"].dag_id)
        with PauseWatch(partial(dag_is_paused, dag_id), windows.interrupt) as watch:
            try:
                result = windows.replicate()
            except Exception as error:
                if watch.paused:
                    log.warning("The window ends with: %s", error)
                    raise WindowPaused(dag_id, window) from error
                raise
        task.xcom_push(CUT, result.is_cut)
        worked = bool(result.rows) or result.has_waited  # which is as good as `idle`
        task.xcom_push(EMPTY, not worked)
        needless = {IDLE: worked, NEXT: not result.is_cut}
        skip(name for name in self.downstream_task_ids if needless.get(name))

    def windows(self, context: Context, window: str, selection: Selection) -> Windows:
        """Return how to run and end the window: of everything that is new, on the Spark connection."""
        from airmirror.on_airflow.tasks.spark import windows_of
        from airmirror.on_airflow.tasks.window import replicate

        return windows_of(self.spark_conn_id, deployment(), self.flow, window, selection, over_connect=replicate)

    def on_kill(self) -> None:
        if self._on_kill is not None:
            self._on_kill()


class VerifyWindow(FlowOperator):
    """The gate: what passes is advanced, what does not is held, and fails the task. ``follows``: windows that follow the log
    come before it, which were judged meanwhile.
    """

    writes = True
    operator_extra_links = (DataDocsLink(),)
    page = ""
    received: tuple[Received, ...] = ()

    def __init__(self, *, follows: bool = False, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.follows = follows

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.telling import NotVerified, decide_id_of
        from airmirror.on_airflow.tasks.window import Received, verify

        task, run, passed = context["ti"], str(context["run_id"]), list[Received]()
        # Tried or run again, the gate takes nobody's word and reads the target.
        trusted = run if task.try_number == 1 else ""
        try:
            judge = window_id(context, "verify")
            # What the run's windows had verified meanwhile was received too, and what an earlier attempt has let pass.
            show, followed = partial(setattr, self, "page"), run if self.follows or task.try_number > 1 else ""
            self.received = verify(
                deployment(), self.flow, judge, trusted, selection, followed=followed, show=show, passed=passed.extend
            )
        except AirmirrorError as error:
            # Airflow takes no events of a task that fails: the next one tells them.
            if passed:
                task.xcom_push(PASSED, [each.as_told for each in passed])
            if not isinstance(error, NotVerified):
                raise
            dag_id = decide_id_of(self.flow)
            if run := push_held(task, dag_id, [list(item) for item in error.held], error.runs):
                # A link in the log can be clicked, one in an error's text can't.
                self.log.warning("To be decided here: %s", question_of(dag_id, run))
            raise
        add_events(context, self, self.received)

    def get_openlineage_facets_on_complete(self, _task_instance: Any) -> OperatorLineage[Any, Any]:
        """From topic to topic, for those that received records; called by Airflow's OpenLineage listener."""
        return lineage_of(self.received)


class PostWindowOperator(FlowOperator):
    """One of the tasks that follow a window. ``purpose``: a part of the name of its lease."""

    writes = True
    post_window_task, purpose = "emit_offset_syncs", "syncs"

    def work(self, context: Context, selection: Selection) -> Any:
        from airmirror.on_airflow.tasks.window import do_task

        return do_task(deployment(), self.flow, self.post_window_task, window_id(context, self.purpose), selection)


class EmitOffsetSyncs(PostWindowOperator):
    """MirrorMaker 2's offset syncs, up to the verified offsets; and the events of a gate that has failed for other partitions.
    The tasks for groups whose time has not come are skipped.
    """

    def work(self, context: Context, selection: Selection) -> None:
        if told := context["ti"].xcom_pull(task_ids=VERIFY, key=PASSED):
            from airmirror.on_airflow.tasks.window import still_to_tell

            add_events(context, self, still_to_tell(deployment(), self.flow, told))
        now = super().work(context, selection)
        skip(name for name in self.get_flat_relative_ids(upstream=False) if name in GROUP_TASKS and name not in now)


class EmitCheckpoints(PostWindowOperator):
    """MirrorMaker 2's checkpoints of the source's consumer groups, up to the verified offsets."""

    post_window_task, purpose = CHECKPOINTS, "checkpoints"


class SyncGroupOffsets(PostWindowOperator):
    """Consumer groups without members on the target are moved to where they stand on the source."""

    post_window_task, purpose = GROUPS, "groups"


class NextWindow(TriggerDagRunOperator):
    """Starts the next run at once where this one's window was cut by time or bytes."""

    template_fields = TRIGGERING

    def execute(self, context: Context) -> None:
        if not context["ti"].xcom_pull(task_ids=REPLICATE, key=CUT):
            raise AirflowSkipException("the window was not cut")
        super().execute(context)


class Idle(BaseOperator):
    """Waits after a window that was empty or failed, so that ``@continuous`` does not spin. Waits in the triggerer."""

    def __init__(self, *, idle_ms: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.idle_ms = idle_ms

    def execute(self, context: Context) -> None:
        if context["ti"].xcom_pull(task_ids=REPLICATE, key=EMPTY) is False:
            raise AirflowSkipException("the window was not empty")
        delta = timedelta(milliseconds=self.idle_ms)
        self.defer(trigger=TimeDeltaTrigger(delta, end_from_trigger=True), method_name="execute")


def skip(tasks: Iterable[str]) -> None:
    """End a task so that others are skipped, without a process of their own to find out that there is nothing to do."""
    if needless := sorted(tasks):
        raise DownstreamTasksSkipped(tasks=needless)  # type: ignore[no-untyped-call]


def window_id(context: Context, purpose: str = "") -> str:
    """The run's id, the attempt, and what tells apart two starts of one attempt: each is a window of its own (B)."""
    start = f"{context['ti'].try_number}-{uuid4().hex[:4]}"
    return "#".join(filter(None, (str(context["run_id"]), purpose, start)))


def selection(context: Context) -> Selection:
    given = context["params"]
    return Selection(
        topics=tuple(given.get("topics") or ()),
        partitions=tuple(given.get("partitions") or ()),
        verify=given.get("verify"),
        dry_run=bool(given.get("dry_run")),
    )


def timeout(flow: Flow) -> timedelta:
    """Return the limit of ``replicate_window``: its window, waiting for another one, and the steps before and after."""
    return timedelta(milliseconds=flow.window.longest_ms + flow.window.follow_ms) + timedelta(minutes=8)


log = logging.getLogger(__name__)


def push_held(task: Any, dag_id: str, held: Sequence[Sequence[Any]], runs: Sequence[str]) -> str:
    """Tell ``AskToDecide`` what is held and which run of ``decide.…`` asks about it, and return that; empty: nothing is held.

    ``runs`` are the ids that it may have (``runs_about``). As long as an earlier one is open, it is asked in that one, or what
    was answered there is carried out just now.
    """
    task.xcom_push(HELD, held)
    if not held:
        return ""
    is_open = (run for run in runs if task.get_dr_count(dag_id, run_ids=[run], states=["queued", "running"]))
    found = next(is_open, runs[0])
    task.xcom_push(INCIDENT, found)
    return found


class AskToDecide(TriggerDagRunOperator):
    """Starts the run in which an operator decides what the gate holds: one an incident, however often it is judged again, unless
    that one has failed.

    ``found_by``: the task that has found what is held (``push_held``).
    """

    template_fields = TRIGGERING

    def __init__(self, *, found_by: str = "verify_window", **arguments: Any) -> None:
        super().__init__(skip_when_already_exists=True, **arguments)
        self.found_by = found_by

    def execute(self, context: Context) -> None:
        held = context["ti"].xcom_pull(task_ids=self.found_by, key=HELD)
        if not held:
            raise AirflowSkipException("the gate holds nothing that is still to be asked about")
        self.trigger_run_id = run = context["ti"].xcom_pull(task_ids=self.found_by, key=INCIDENT)
        self.conf = {"held": held}
        # A run that has failed shows no question: start it again.
        failed = context["ti"].get_dr_count(self.trigger_dag_id, run_ids=[self.trigger_run_id], states=["failed"])
        self.reset_dag_run = failed > 0
        log.info("To be answered here: %s", question_of(self.trigger_dag_id, run))
        if dag_is_paused(self.trigger_dag_id):
            log.warning("%s is paused, so that it asks no operator: switch it on.", self.trigger_dag_id)
        super().execute(context)

"""The DAG ``replicate.<source>.<target>`` of a flow: topics → window → gate → offset syncs → checkpoints → group offsets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, AsyncCallback, BaseOperator, DeadlineAlert, DeadlineReference, TriggerRule, chain  # type: ignore[attr-defined]
from airflow.utils.types import DagRunType

from airmirror.config import Flow
from airmirror.config.schedules import CONTINUOUS
from airmirror.on_airflow.dags.assets import alias_of
from airmirror.on_airflow.dags.common import id_of, new_dag, tags
from airmirror.on_airflow.dags.forms import form, is_partial
from airmirror.on_airflow.dags.notifications import callbacks
from airmirror.on_airflow.dags.operators import (
    CHECKPOINTS,
    GROUPS,
    IDLE,
    NEXT,
    AskToDecide,
    EmitCheckpoints,
    EmitOffsetSyncs,
    FlowOperator,
    Idle,
    NextWindow,
    ReplicateWindow,
    SyncGroupOffsets,
    SyncTopics,
    VerifyWindow,
    timeout,
)
from airmirror.on_airflow.dags.schedules import schedule

# A past interval is compared by the audit's DAG. What an operator starts is a type of its own from Airflow 3.3 on.
ALLOWED = [each for each in DagRunType if each not in ("backfill", "asset_materialization")]

DOC = """
Replicates **{flow}**: one run is one window.

1. `sync_topics`: remote topics and partitions exist on {target}.
2. `replicate_window`: every record that {source} has beyond the progress is copied by Spark, in transactions with the
   progress itself, and read back before each commit. A run with nothing new ends without Spark. With `window.follow.ms` it
   stays and copies what comes; the gate judges meanwhile, and syncs, checkpoints and group offsets are written as in 4, 7 and 8.
3. `verify_window`: the gate. Partitions that pass advance; one that does not is held, fails this task, and the others continue.
4. `emit_offset_syncs`: MirrorMaker 2's offset syncs, up to what is verified.
5. `next_window`: lets the next run begin as soon as this one ends where the window was cut. (`idle` under `@continuous`:
   waits `window.idle.ms` after a window that was empty or failed, while the others continue.)
6. `ask_to_decide`: where the gate holds partitions, a run of `decide.{source}.{target}` asks an operator what to do.
7. `emit_checkpoints`: where consumer groups stand on both clusters, for MirrorMaker 2's tools and clients.
8. `sync_group_offsets`: groups without members on {target} are moved to where they stand on {source}. Both are skipped until
   their intervals have passed.

When a run is red: the failed task's log ends with what is wrong and what to do. A window can always be run again: it
resumes at the committed progress. To judge again what is held, clear `verify_window`; it then reads the target again.

Backfills are refused here: past intervals are for `audit.{source}.{target}`.
"""


def replicate_dag(flow: Flow) -> DAG:
    """The DAG of a flow. Raises BadSchedule."""
    source, target = flow.source.alias, flow.target.alias
    # What a failed window has committed, for other partitions or before it failed, is judged all the same, and what has passed
    # gets its syncs, whatever is held.
    always: dict[str, Any] = {"flow": flow.name, "max_active_tis_per_dag": 1, "trigger_rule": TriggerRule.ALL_DONE}
    when = schedule(flow.name, flow.settings.window_schedule, flow.settings.window_trigger_records)
    with new_dag(
        id_of("replicate", flow),
        when,
        description=f"Switch this on to mirror {flow.name}: each run replicates what is new, and proves it.",
        doc_md=DOC.format(flow=flow.name, source=source, target=target),
        tags=tags(flow),
        params=form(flow),
        # Past intervals are audit's: a window knows no interval, and ends at the log's end.
        allowed_run_types=ALLOWED,
        deadline=deadline(flow),
        # What a person narrows down, or only looks at, says of the flow neither that it fails nor that it does not.
        **callbacks(flow, "replicate", lambda context: not is_partial(context.get("params") or {})),
    ) as dag:
        # Four kinds of changes on the target, and the reads before them.
        longest = timedelta(minutes=15) + 4 * timedelta(milliseconds=flow.settings.admin_timeout_ms)
        sync_topics = SyncTopics(task_id="sync_topics", flow=flow.name, execution_timeout=longest)
        replicate_window = ReplicateWindow(
            task_id="replicate_window",
            flow=flow.name,
            spark_conn_id=flow.settings.spark_conn_id,
            max_active_tis_per_dag=1,
            execution_timeout=timeout(flow),
        )
        follows = flow.window.follow_ms > 0
        verify_window = VerifyWindow(task_id="verify_window", outlets=[alias_of(flow)], follows=follows, **always)
        emit_offset_syncs = EmitOffsetSyncs(task_id="emit_offset_syncs", outlets=[alias_of(flow)], **always)
        # An operator decides about holds, in a run of its own; this one stays failed. (A gate that passed needs no process
        # to find that out: each one is a second of a run.)
        ask = AskToDecide(
            task_id="ask_to_decide",
            trigger_dag_id=id_of("decide", flow),
            trigger_rule=TriggerRule.ONE_FAILED,
            retries=0,
        )
        following: BaseOperator
        if when == CONTINUOUS:  # the next run begins in any case
            idle_ms = flow.settings.window_idle_ms
            following = Idle(task_id=IDLE, idle_ms=idle_ms, trigger_rule=TriggerRule.ALL_DONE, retries=0)
        else:
            following = NextWindow(task_id=NEXT, trigger_dag_id=id_of("replicate", flow), retries=0)
        # The run's state is its last task's: failed where anything before has failed.
        done = EmptyOperator(task_id="done", trigger_rule=TriggerRule.NONE_FAILED)
        sync_topics >> replicate_window >> verify_window >> emit_offset_syncs
        replicate_window >> following
        verify_window >> ask
        # One after the other: they take the lease. Failed or not, the data keeps flowing.
        for_groups: list[FlowOperator] = []
        if flow.settings.emit_checkpoints_enabled:
            for_groups.append(EmitCheckpoints(task_id=CHECKPOINTS, **always))
        if flow.settings.sync_group_offsets_enabled:
            for_groups.append(SyncGroupOffsets(task_id=GROUPS, **always))
        chain(emit_offset_syncs, *for_groups)
        [replicate_window, verify_window, emit_offset_syncs, ask, following, *for_groups] >> done
    return dag


def deadline(flow: Flow) -> DeadlineAlert:
    """A run that does not end is counted as late: so long after the average of the last ten (``window.deadline.ms``).

    Not measured from when it was queued: Airflow 3.3.2 can't clear a task of a run that has such a deadline.
    """
    given = flow.settings.window_deadline_ms
    longest = timedelta(milliseconds=given) if given else 2 * timeout(flow)
    late = AsyncCallback("airmirror.on_airflow.triggers.deadlines.run_is_late", {"flow": flow.name})
    average = DeadlineReference.AVERAGE_RUNTIME(max_runs=10, min_runs=1)
    return DeadlineAlert(reference=average, interval=longest, callback=late)

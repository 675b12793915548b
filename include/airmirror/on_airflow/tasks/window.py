"""The work of the tasks of a flow's DAG: the steps of the commands, reported in the task's log. Loaded in tasks only."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.flows import leases, post_window
from airmirror.flows.following import following_of
from airmirror.flows.gates import Expectations, expectations_of, verify_flow
from airmirror.flows.post_window import tasks_due
from airmirror.flows.prepare import Opened, Prepared, backfill_of, open_flow, prepare
from airmirror.flows.selection import Selection
from airmirror.ledger import FlowLedger
from airmirror.ledger.pages import GATE, PagePlace, keep_page
from airmirror.on_airflow.connections import with_connections, with_neighbours
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.tasks.plans import Show
from airmirror.on_airflow.tasks.telling import (
    NotMirrored,
    PartitionsFailed,
    not_verified,
    phase,
    tell_plan,
    tell_progress,
    tell_result,
    tell_topics,
    tell_verification,
)
from airmirror.on_spark.windows import run
from airmirror.partitions import TopicPartition
from airmirror.quality.page import verdict_page
from airmirror.quality.rows import Row
from airmirror.quality.suites import BUILT_IN, check_suites, load_suites
from airmirror.quality.verdict import Validation
from airmirror.windows.errors import PartitionHeld
from airmirror.windows.fence import end_window
from airmirror.windows.findings import GateRow
from airmirror.windows.judging import Verification
from airmirror.windows.results import WindowResult
from airmirror.windows.window import WindowOrder
from airmirror.wire.mappings import MappingRecord

log = logging.getLogger(__name__)

Done = TypeVar("Done")


@contextmanager
def opened_flow(deployment: Deployment, name: str, selection: Selection) -> Iterator[Opened]:
    """The flow of a task: with its connections, and verified as the trigger form wants it."""
    with open_flow(deployment.config, name, deployment.ledger) as opened:
        flow = selection.applied(with_connections(opened.configuration, opened.flow))
        yield replace(opened, flow=flow, configuration=with_neighbours(opened.configuration, flow))


def when_free(flow: Flow, work: Callable[[], Done]) -> Done:
    """Do what needs the flow's lease as soon as it is free, and tell in the log why not yet. Raises FlowBusy."""
    return leases.when_free(flow, work, lambda phase: log.info("%s", phase))


def sync_topics(deployment: Deployment, name: str, selection: Selection) -> None:
    """Create what is missing on the target; of a dry run, tell what would be done. Bad expectations are refused here."""
    suites = load_suites(deployment.expectations)
    users = [suite for suite in suites if Path(suite.path).name != BUILT_IN]
    check_suites(users)
    log.info("Gate: %s.", Expectations(suites))
    with opened_flow(deployment, name, selection) as opened:
        if selection.dry_run:
            tell_plan(opened, selection)
            return
        prepared = prepare(opened)
    tell_topics(prepared)
    if strangers := sorted(set(selection.topics) - set(prepared.topics)):
        raise NotMirrored(name, tuple(strangers))


def replicate(deployment: Deployment, name: str, window: str, spark_url: str, selection: Selection) -> WindowResult:
    """Run a window and leave its last judgement to ``verify``; where it follows the log, the same gate judges meanwhile.

    Raises PartitionsFailed when all is done that can be.
    """
    with opened_flow(deployment, name, selection) as opened:
        prepared = prepare(opened)
        order = WindowOrder(window, only=selection.takes, advance=False, tell=phase, report=tell_progress)
        log.info("Window %s of flow %s: verify=%s.", window, name, opened.flow.window.verify)

        def copy() -> WindowResult:
            if not opened.flow.window.follow_ms:
                return run(prepared, spark_url, order)
            by = expectations_of(deployment.expectations)
            return run(prepared, spark_url, replace(order, following=following_of(prepared.opened, by, window=window)))

        result = when_free(opened.flow, copy)
    check_result(prepared, result)
    return result


def check_result(prepared: Prepared, result: WindowResult) -> None:
    """Tell what a window did. Raises PartitionsFailed where something is wrong with it that is not the gate's to tell."""
    tell_result(result)
    # What the gate holds is its own to tell, in verify_window.
    errors = [row.error for row in result.rows if row.error is not None and not isinstance(row.error, PartitionHeld)]
    if errors or prepared.refused:
        final = prepared.is_refused_for_good or any(not error.transient for error in errors)
        raise PartitionsFailed(result.flow, result.window, (*map(str, errors), *prepared.refused), final)


@dataclass(frozen=True)
class Received:
    """A topic that received verified records: how many, and at which target offsets ``[start, end)`` by partition."""

    topic: str
    remote_topic: str
    source: str  # bootstrap servers' first, as OpenLineage names a cluster
    target: str
    records: int
    offsets: Mapping[int, tuple[int, int]]

    @property
    def as_told(self) -> dict[str, Any]:
        """As ``still_to_tell`` takes it, for XCom."""
        places = {str(number): list(place) for number, place in self.offsets.items()}
        return {"topic": self.topic, "remote_topic": self.remote_topic, "records": self.records, "offsets": places}


def verify(
    deployment: Deployment,
    name: str,
    window: str,
    trusted: str,
    selection: Selection,
    waived: Mapping[TopicPartition, int] | None = None,
    followed: str = "",
    show: Show = lambda page: None,
    passed: Callable[[Sequence[Received]], None] = lambda received: None,
) -> tuple[Received, ...]:
    """Judge what is not verified yet, advance what passes, hold what does not; return the topics that received records.
    ``show`` hears of the page, ``passed`` of these topics before anything is raised. Raises NotVerified.

    ``trusted``: the run whose windows are: their slots have read back. ``followed``: the run whose windows have followed the log,
    or whose gate is tried again; what was verified meanwhile was received too. Empty: none. Which windows are a run's the mapping
    topic says, not XCom, where whoever may trigger may write.
    """
    by = expectations_of(deployment.expectations)
    with opened_flow(deployment, name, selection) as opened:
        hears = partial(_keep_verdict, opened.ledger, window, show)
        verification, validation = when_free(
            opened.flow,
            lambda: verify_flow(
                opened, by, window=window, trusted=WindowsOfRun(trusted), waived=waived, hears=hears, tell=phase
            ),
        )
        received = _received(opened, verification, followed)
        decisions, users = opened.ledger.decisions() if verification.errors else [], opened.flow.settings.decide_users
    passed(received)
    if not verification.verdicts:
        log.info("Nothing to judge: everything that was replicated is verified.")
        return received
    tell_verification(verification, validation)
    if by.suites is None:
        log.warning("Judged by %s.", by)
    if verification.errors:
        if all(error.transient for error in verification.errors):
            raise verification.errors[0]
        raise not_verified(name, window, verification, decisions, users)
    return received


def _keep_verdict(ledger: FlowLedger, window: str, show: Show, rows: Sequence[Row], validation: Validation) -> None:
    try:
        page = verdict_page(rows, validation, flow=ledger.flow, window=window)
        show(keep_page(ledger.engine, PagePlace(GATE, ledger.flow), window, page))
    except AirmirrorError as error:  # the page shows a verdict, and makes none
        log.warning("The page of this judgement is not kept: %s", error)


def _received(opened: Opened, verification: Verification, followed: str) -> tuple[Received, ...]:
    """The topics of what was judged, and of what had been verified while the run's windows followed the log."""
    flow, failed = opened.flow, {verdict.key for verdict in verification.verdicts if verdict.error is not None}
    # Of a partition that has failed without a look at it nothing is known to be verified now.
    judged_from = dict.fromkeys(failed, 0) | {finding.key: finding.source_start for finding in verification.findings}
    before = (
        record
        for record in _of_run(opened, followed)
        if record.source_start < judged_from.get(record.key, record.source_end)
    )
    findings = (finding for finding in verification.findings if finding.key not in failed)
    records, ends = Counter[tuple[str, str]](), dict[tuple[str, str], dict[int, tuple[int, int]]]()
    parts: Iterator[MappingRecord | GateRow] = chain(before, findings)
    for part in parts:
        if part.copied:
            topics = part.topic, part.remote_topic
            records[topics] += part.copied
            first, end = ends.setdefault(topics, {}).get(part.partition, (part.target_start, part.target_end))
            ends[topics][part.partition] = min(first, part.target_start), max(end, part.target_end)
    servers = flow.source.bootstrap_servers[0], flow.target.bootstrap_servers[0]
    return tuple(Received(*pair, *servers, records[pair], dict(sorted(ends[pair].items()))) for pair in sorted(records))


def still_to_tell(deployment: Deployment, name: str, told: Any) -> tuple[Received, ...]:
    """The topics that a gate has let pass and that its task could not tell, as it has failed for others.

    ``told``: each as ``Received.as_told``, from XCom, where others may write too: what the ledger does not know to be verified is
    left out.
    """
    with opened_flow(deployment, name, Selection()) as opened:
        verified, last = opened.ledger.verified(), opened.ledger.last_mappings()
        flow = opened.flow

    def known(topic: str, remote: str, number: int, end: int) -> bool:
        key = topic, number
        return key in verified and end <= verified[key].target_end and last[key].remote_topic == remote

    found = []
    try:
        for each in told:
            topic, remote = str(each["topic"]), str(each["remote_topic"])
            places = {int(number): (int(start), int(end)) for number, (start, end) in each["offsets"].items()}
            if places and all(known(topic, remote, number, end) for number, (_, end) in places.items()):
                servers = flow.source.bootstrap_servers[0], flow.target.bootstrap_servers[0]
                found.append(Received(topic, remote, *servers, int(each["records"]), places))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        log.warning("No event is written of what the gate has let pass: %r is not what verify_window writes.", error)
    return tuple(found)


def _of_run(opened: Opened, run: str) -> Iterator[MappingRecord]:
    """Yield what the windows of a run, a retried task's too, have committed."""
    for window in sorted({row.window for row in opened.ledger.windows() if row.window in WindowsOfRun(run)}):
        yield from opened.ledger.of_window(window)


@dataclass(frozen=True)
class WindowsOfRun(Container[str]):
    """The windows of a run's ``replicate_window``, of whichever attempt (``operators.window_id``); empty: of none."""

    run: str

    def __contains__(self, window: object) -> bool:
        return bool(self.run) and str(window).rpartition("#")[0] == self.run


def do_task(deployment: Deployment, name: str, task: str, window: str, selection: Selection) -> set[str]:
    """Do one of the post-window tasks, if it is time to; which of the groups' tasks are due now."""
    with opened_flow(deployment, name, selection) as opened:
        log.info("%s.", post_window.do_task(opened, task, window, phase))
        return tasks_due(opened)


def interrupt(deployment: Deployment, name: str, window: str, spark_url: str | None, selection: Selection) -> None:
    """End a window of this process, which may wait for another one: its Spark Connect job by tag, then, while no other has taken
    the lease, its slots by the fence."""
    from airmirror.on_spark.execute import interrupt as interrupt_job

    with opened_flow(deployment, name, selection) as opened:
        try:
            if spark_url is not None:
                interrupt_job(spark_url, opened.flow)
        finally:  # whatever Spark says: its workers write no more
            ended = end_window(opened.flow, opened.ledger, window)
            if beside := backfill_of(opened):  # its windows hold both leases
                ended |= end_window(beside.flow, beside.ledger, window)
    log.info("Window %s: %s.", window, "fenced and released" if ended else "it holds no lease (any more)")

"""What the tasks of a flow's DAG do: the same steps as the commands', told to the task's log. Loaded in tasks only."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from airmirror.config import Flow
from airmirror.errors import AirmirrorError, listed
from airmirror.flows import rounds
from airmirror.flows.choice import Choice
from airmirror.flows.gates import expectations_of, judge_flow
from airmirror.flows.groups import rounds_due
from airmirror.flows.prepare import Opened, Prepared, backfill_of, dry_run, open_flow, prepare
from airmirror.naming import segment_topic
from airmirror.on_airflow.connections import with_connections, with_neighbours
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_spark.windows import run
from airmirror.quality import report
from airmirror.quality.gate import Judgement
from airmirror.quality.suites import BUILT_IN, check_suites, load_suites
from airmirror.windows.errors import FlowBusy, PartitionHeld
from airmirror.windows.fence import end_window
from airmirror.windows.findings import Finding
from airmirror.windows.progress import Progress
from airmirror.windows.results import WindowResult
from airmirror.windows.window import Judged
from airmirror.wire.requests import TopicPartition

log = logging.getLogger(__name__)

Done = TypeVar("Done")
CLAIM_SECONDS, CLAIM_RETRY_SECONDS = 180, 5  # longer than a window copies (window.max.ms), unless told otherwise


@dataclass(eq=False)
class PartitionsFailed(AirmirrorError):
    """Partitions of a window that were not replicated; the others were."""

    flow: str
    window: str
    errors: tuple[str, ...]
    final: bool

    @property
    def transient(self) -> bool:  # type: ignore[override]
        return not self.final

    def __str__(self) -> str:
        return f"flow {self.flow!r}, window {self.window!r}: {len(self.errors)} partitions have errors:\n{listed(self.errors)}"


@dataclass(eq=False)
class NotVerified(AirmirrorError):
    """Partitions that did not pass the gate; the others have advanced. ``held``: they, with the last offset in question."""

    flow: str
    window: str
    table: str
    errors: tuple[str, ...]
    held: tuple[tuple[str, int, int], ...] = ()

    def __str__(self) -> str:
        reasons = "\n".join(self.errors[:20])
        where = f"flow {self.flow!r}, window {self.window!r}"
        return f"{where}: partitions did not pass the gate and are held:\n{self.table}\n{reasons}"


@dataclass(eq=False)
class NotMirrored(AirmirrorError):
    """Topics that a run was to be narrowed down to and that the flow does not mirror."""

    flow: str
    topics: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"flow {self.flow!r} does not mirror {', '.join(self.topics)}: name topics of the source that its `topics` and "
            "`topics.exclude` let pass"
        )


@contextmanager
def opened_flow(place: Deployment, name: str, choice: Choice) -> Iterator[Opened]:
    """The flow of a task: with its connections, and verified as the trigger form wants it."""
    with open_flow(place.config, name, place.ledger) as opened:
        flow = choice.applied(with_connections(opened.configuration, opened.flow))
        yield replace(opened, flow=flow, configuration=with_neighbours(opened.configuration, flow))


def when_free(work: Callable[[], Done]) -> Done:
    """Do what needs the flow's claim, and wait for it while another window has it; FlowBusy after three minutes."""
    return Retrying(
        retry=retry_if_exception_type(FlowBusy),
        wait=wait_fixed(CLAIM_RETRY_SECONDS),
        stop=stop_after_delay(CLAIM_SECONDS),
        before_sleep=lambda state: log.info("Waits: %s", state.outcome and state.outcome.exception()),
        reraise=True,
    )(work)


def sync_topics(place: Deployment, name: str, choice: Choice) -> None:
    """Create what is missing on the target; of a dry run, tell what would be done. Bad expectations are refused here."""
    suites = load_suites(place.expectations)
    users = [suite for suite in suites if Path(suite.path).name != BUILT_IN]
    check_suites(users)
    log.info("Gate: %s.", ", ".join(f"suite {suite.name} ({len(suite.expectations)} expectations)" for suite in suites))
    with opened_flow(place, name, choice) as opened:
        if choice.dry_run:
            _tell_plan(opened, choice)
            return
        prepared = prepare(opened)
    _tell_topics(prepared)
    if strangers := sorted(set(choice.topics) - set(prepared.topics)):
        raise NotMirrored(name, tuple(strangers))


def replicate(
    place: Deployment,
    name: str,
    window: str,
    spark_url: str,
    choice: Choice,
    until: Callable[[Prepared], Mapping[TopicPartition, int] | None] = lambda prepared: None,
) -> WindowResult:
    """Run a window and leave its judgement to ``verify``. ``until``: up to which offsets, None: to the end.

    Raises PartitionsFailed when all is done that can be.
    """
    with opened_flow(place, name, choice) as opened:
        prepared = prepare(opened)
        ends = until(prepared)
        log.info("Window %s of flow %s: verify=%s.", window, name, opened.flow.window.verify)
        result = when_free(
            lambda: run(
                prepared, spark_url, window,
                only=choice.takes, until=ends, advance=False, tell=_phase, report=_progress,
            )
        )  # fmt: skip
    tell_result(result)
    errors = [row.error for row in result.rows if row.error is not None and row.failed]
    if errors or prepared.refused:
        final = any(not error.transient for error in errors) or bool(prepared.refused)
        raise PartitionsFailed(name, window, (*map(str, errors), *prepared.refused), final)
    return result


@dataclass(frozen=True)
class Received:
    """A topic that received verified records: how many, and at which target offsets ``[start, end)`` by partition."""

    topic: str
    remote_topic: str
    source: str  # bootstrap servers' first, as OpenLineage names a cluster
    target: str
    records: int
    offsets: Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class VerifiedWindow:
    """What a gate let pass: the topics that received records, and the Data Docs' page."""

    received: tuple[Received, ...] = ()
    page: Path | None = None


def verify(
    place: Deployment,
    name: str,
    window: str,
    trusted: Collection[str],
    choice: Choice,
    waived: Mapping[TopicPartition, int] | None = None,
) -> VerifiedWindow:
    """Judge what is not verified yet, advance what passes, hold what does not. Raises NotVerified."""
    by = expectations_of(place.expectations)
    docs = place.data_docs / name.replace("->", ".")
    with opened_flow(place, name, choice) as opened:
        judged, judgement = when_free(
            lambda: judge_flow(opened, by, window=window, trusted=trusted, waived=waived, docs=docs, tell=_phase)
        )
    if judgement is None:
        log.info("Nothing to judge: everything that was replicated is verified.")
        return VerifiedWindow()
    _tell_judgement(judged, judgement)
    if judged.errors:
        if all(error.transient for error in judged.errors):
            raise judged.errors[0]
        failing = report.failures(judgement, [finding.row() for finding in judged.findings])
        held = tuple(
            (verdict.topic, verdict.partition, verdict.offset)
            for verdict in judged.verdicts
            if verdict.error is not None and not verdict.error.transient
        )
        raise NotVerified(name, window, failing, tuple(map(str, judged.errors)), held)
    return VerifiedWindow(_received(opened.flow, judged), judgement.docs)


def _received(flow: Flow, judged: Judged) -> tuple[Received, ...]:
    by_topic: dict[tuple[str, str], list[Finding]] = {}
    for finding in judged.findings:
        if finding.copied:
            by_topic.setdefault((finding.topic, finding.remote_topic), []).append(finding)
    return tuple(
        Received(
            *topics, flow.source.bootstrap_servers[0], flow.target.bootstrap_servers[0],
            sum(finding.copied for finding in findings),
            {finding.partition: (finding.target_start, finding.target_end) for finding in findings},
        )
        for topics, findings in sorted(by_topic.items())
    )  # fmt: skip


def do_round(place: Deployment, name: str, round_: str, window: str, choice: Choice) -> set[str]:
    """Do one of the rounds that follow a window, if it is time to; which of the groups' rounds are due now."""
    with opened_flow(place, name, choice) as opened:
        log.info("%s.", rounds.do_round(opened, round_, window, _phase))
        return rounds_due(opened)


def interrupt(place: Deployment, name: str, window: str, spark_url: str | None, choice: Choice) -> None:
    """End a window from outside: its Spark Connect job by tag, then, while the claim is its own, its slots by the fence."""
    from airmirror.on_spark.execute import interrupt as interrupt_job

    with opened_flow(place, name, choice) as opened:
        if spark_url is not None:
            interrupt_job(spark_url, name)
        ended = end_window(opened.flow, window, segment_topic(opened.flow.source.alias), opened.ledger)
        if beside := backfill_of(opened):  # its windows hold both claims
            ended |= end_window(beside.flow, window, segment_topic(beside.flow.source.alias), beside.ledger)
    log.info("Window %s: %s.", window, "fenced and released" if ended else "it holds no claim (any more)")


def _phase(name: str) -> None:
    log.info("Now: %s.", name)


def _progress(progress: Progress) -> None:
    left = "" if progress.seconds_left is None else f", about {progress.seconds_left:.0f} s left"
    log.info("Committed so far: %s%s.", progress.summary, left)


def _tell_plan(opened: Opened, choice: Choice) -> None:
    topics, planned = dry_run(opened)
    for new in topics.create:
        log.info("Would create %s with %d partitions.", new.name, new.partitions)
    for more in topics.grow:
        log.info("Would grow %s from %d to %d partitions.", more.name, more.before, more.partitions)
    for change in topics.configs:
        log.info("Would change %s.", change)
    for acl in topics.acls:
        log.info("Would create the ACL: %s.", acl)
    for line in (*topics.notes, *topics.warnings):
        log.info("Note: %s", line)
    for refused in topics.refused:
        log.warning("Refused: %s", refused)
    for item in planned:
        if choice.takes(item.key) and (item.has_work or item.error):
            what = item.error or f"offsets {item.start:,} to {item.end - 1:,} ({item.end - item.start:,})"
            log.info("Would replicate %s to %s: %s.", item.key, item.remote_topic, what)
    log.info("A dry run: nothing was written.")


def _tell_topics(prepared: Prepared) -> None:
    log.info("%d topics are mirrored: their remote topics are there.", len(prepared.topics))
    for reason in prepared.refused:
        log.warning("Refused: %s", reason)


def tell_result(result: WindowResult) -> None:
    """What a window did, as a report in the task's log."""
    for row in result.rows:
        if row.error is not None and not row.failed:
            log.warning("Left out: %s", row.error)
    if all(isinstance(row.error, PartitionHeld) for row in result.rows):
        log.info("Nothing new in %d partitions; Spark was not needed. (%.1f s)", result.partitions, result.seconds)
        return
    rate = result.copied / result.seconds if result.seconds else 0.0
    log.info(
        "Replicated %s records, %.1f MB of %d partitions in %.1f s (%s records/s); copy %.1f s.",
        f"{result.copied:,}", result.bytes / 1e6, len(result.rows), result.seconds, f"{rate:,.0f}",
        result.phases.get("copy", 0.0),
    )  # fmt: skip
    lost = ("lost",) if any(row.lost for row in result.rows) else ()
    columns = ("topic", "partition", "remote_topic", "source_start", "source_end", "copied", *lost, "lag")
    log.info("\n%s", report.table([{name: getattr(row, name) for name in columns} for row in result.rows], columns))
    if result.is_cut:
        log.info("The window was cut (window.max.ms or window.max.bytes); the next run starts at once.")


def _tell_judgement(judged: Judged, judgement: Judgement) -> None:
    passed = [verdict for verdict in judged.verdicts if verdict.error is None]
    log.info(
        "Judged %d partitions: %d passed and advanced (%s records), %d not.",
        len(judged.verdicts), len(passed), f"{sum(verdict.records for verdict in passed):,}",
        len(judged.verdicts) - len(passed),
    )  # fmt: skip
    for warning in judgement.warnings:
        log.warning("Warning of the gate: %s", warning)
    if judgement.docs is not None:
        log.info("Data Docs: %s", judgement.docs)

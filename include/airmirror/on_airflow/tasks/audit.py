"""The work of the tasks that audit intervals and offsets. Loaded in tasks only."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from airmirror.errors import AirmirrorError, listed
from airmirror.flows.audit import Range, audit, ranges_of
from airmirror.flows.audit_report import as_text, shown_audit
from airmirror.flows.backfill import before_the_first, joined
from airmirror.flows.prepare import Opened, backfill_of, prepare
from airmirror.flows.selection import Selection
from airmirror.ledger.pages import AUDITS, PagePlace
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.tasks.plans import Show, keep_document, signer
from airmirror.on_airflow.tasks.submit import SubmissionBounds
from airmirror.on_airflow.tasks.telling import NotMirrored, phase, tell_progress
from airmirror.on_airflow.tasks.window import check_result, opened_flow, when_free
from airmirror.on_spark.ranges import run_ranges
from airmirror.topics.sync import look
from airmirror.windows.results import WindowResult
from airmirror.windows.window import WindowOrder

log = logging.getLogger(__name__)


class AuditFailed(AirmirrorError):
    """Partitions of a range that are not on the target as they are on the source."""

    flow: str
    errors: tuple[str, ...]

    def __str__(self) -> str:
        return f"flow {self.flow!r}: {len(self.errors)} partitions did not pass the audit:\n{listed(self.errors)}"


class NoInterval(AirmirrorError):
    """An audit that was started without an interval."""

    flow: str

    def __str__(self) -> str:
        name = self.flow.replace("->", ".")
        return (
            f"flow {self.flow!r}: this run has no data interval: fill in `from` and `to`; or, with an `audit.schedule`, start "
            f"audits with `airflow backfill create --dag-id audit.{name} --from-date … --to-date …`"
        )


class NoOffsets(AirmirrorError):
    """A run for offsets whose form does not name them."""

    flow: str
    what: str
    says = (
        "flow {0.flow!r}: a run for {0.what!r} needs one topic, one partition, the first offset and the offset before which "
        "it ends: fill them in"
    )


class BadRange(AirmirrorError):
    """A range of offsets that makes no sense for its partition."""

    flow: str
    topic: str
    partition: int
    start: int
    end: int
    reason: str

    def __str__(self) -> str:
        where = f"{self.topic}-{self.partition} offsets {self.start} to {self.end - 1}"
        return f"flow {self.flow!r}: {where}: {self.reason}"


@dataclass(frozen=True)
class Interval:
    """From ``begin`` until before ``end``, of the records' timestamps."""

    begin: datetime
    end: datetime

    def ranges(self, opened: Opened, topics: Sequence[str], selection: Selection) -> list[Range]:
        """Return the ranges of the source in the interval, as far as the run is narrowed to them."""
        chosen = [topic for topic in topics if not selection.topics or topic in selection.topics]
        begin, end = (int(time.timestamp() * 1000) for time in (self.begin, self.end))
        found, unavailable = ranges_of(opened, chosen, begin, end)
        for error in unavailable:
            if selection.takes(error.key):
                raise error
        return [item for item in found if selection.takes(item.key)]


@dataclass(frozen=True)
class OffsetRange:
    """One explicit range."""

    range: Range

    def ranges(self, opened: Opened, topics: Sequence[str], selection: Selection) -> list[Range]:
        """The range itself. Raises NotMirrored, BadRange."""
        item, name = self.range, opened.flow.name
        if item.topic not in topics:
            raise NotMirrored(name, (item.topic,))
        everything, _ = ranges_of(opened, [item.topic], 0, 2**62)
        there = {found.key: found for found in everything}.get(item.key)
        if not item.start < item.end:
            raise BadRange(name, **vars(item), reason="it is empty: `end` is exclusive")
        if there is None or item.end > there.end:
            raise BadRange(name, **vars(item), reason=f"the source ends at {there.end if there else 0}")
        return [item]


Places = Interval | OffsetRange


def ranges_in(places: Places, selection: Selection, opened: Opened) -> list[Range]:
    """The ranges of what a run is about, asked of the source now."""
    found = places.ranges(opened, sorted(look(opened.flow).topics), selection)
    log.info("Partitions with records in the range: %d.", len(found))
    return found


def replicate_ranges(
    deployment: Deployment, name: str, window: str, spark_url: str, selection: Selection, only_up_to: SubmissionBounds
) -> WindowResult:
    """Replicate, over Spark Connect, what lies beyond progress up to the ends of the ranges. Raises PartitionsFailed."""
    with opened_flow(deployment, name, selection) as opened:
        prepared = prepare(opened)
        return run_ranges(
            prepared,
            spark_url,
            WindowOrder(window, only=selection.takes, tell=phase, report=tell_progress),
            only_up_to.ranges(opened),
            before=only_up_to.before,
            done=partial(check_result, prepared),
            patiently=partial(when_free, opened.flow),
        )


def compare_ranges(
    deployment: Deployment, name: str, selection: Selection, places: Places, title: str, *, strict: bool, show: Show
) -> None:
    """Compare the ranges with the target; ``show`` hears of the report's page. ``strict``: what can't be replicated fails too.

    Raises AuditFailed, after the report is written.
    """
    signer(deployment)  # a key that is none is told before anything is read
    with opened_flow(deployment, name, selection) as opened:
        ranges = places.ranges(opened, sorted(look(opened.flow).topics), selection)
        beside = backfill_of(opened)
        # Records that came into an interval since its window ended are the next window's.
        missing = strict and isinstance(places, OffsetRange) and not selection.dry_run
        found = audit(opened, ranges, refuse_before=strict, refuse_missing=missing, tell=log.info)
        if beside is not None:
            missing = strict and not selection.dry_run
            parts = before_the_first(opened, ranges)
            earlier = audit(beside, parts, refuse_before=False, refuse_missing=missing, tell=log.info)
            found = joined(found, earlier)
    made = shown_audit(found, name, title)
    log.info("%s In short:\n%s", made.headline, as_text(made))  # first: it was found, whatever becomes of the page
    try:
        keep_document(deployment, PagePlace(AUDITS, name), title, made, show)
        log.info("Report: the button of this name.")
    except AirmirrorError as error:
        if not found.errors:
            raise
        log.warning("The report of this audit is not kept: %s", error)
    if found.errors:
        if all(error.transient for error in found.errors):
            raise found.errors[0]
        raise AuditFailed(name, tuple(map(str, found.errors)))

"""What the tasks of audits and replays do. Loaded in tasks only."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from airmirror.errors import AirmirrorError, listed
from airmirror.flows.audit import Range, audit, ranges_of
from airmirror.flows.audit_report import as_text, write_page
from airmirror.flows.backfill import backfill, before_the_first, joined
from airmirror.flows.choice import Choice
from airmirror.flows.prepare import Opened, Prepared, backfill_of
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.telling import NotMirrored, tell_result
from airmirror.on_airflow.work import opened_flow, replicate, when_free
from airmirror.on_spark.windows import on_spark
from airmirror.topics.sync import look
from airmirror.windows.results import WindowResult
from airmirror.wire.requests import TopicPartition

log = logging.getLogger(__name__)


@dataclass(eq=False)
class AuditFailed(AirmirrorError):
    """Partitions of a range that are not on the target as they are on the source."""

    flow: str
    errors: tuple[str, ...]

    def __str__(self) -> str:
        return f"flow {self.flow!r}: {len(self.errors)} partitions did not pass the audit:\n{listed(self.errors)}"


@dataclass(eq=False)
class NoInterval(AirmirrorError):
    """An audit that was started without an interval."""

    flow: str

    def __str__(self) -> str:
        name = self.flow.replace("->", ".")
        return (
            f"flow {self.flow!r}: this run has no data interval: fill in `from` and `to`, or start audits with "
            f"`airflow backfill create --dag-id audit.{name} --from-date … --to-date …`"
        )


@dataclass(eq=False)
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

    def ranges(self, opened: Opened, topics: Sequence[str], choice: Choice) -> list[Range]:
        """What of the source lies in the interval, as far as the run is narrowed down to it."""
        chosen = [topic for topic in topics if not choice.topics or topic in choice.topics]
        begin, end = (int(time.timestamp() * 1000) for time in (self.begin, self.end))
        found, unavailable = ranges_of(opened, chosen, begin, end)
        for error in unavailable:
            if choice.takes(error.key):
                raise error
        return [item for item in found if choice.takes(item.key)]


@dataclass(frozen=True)
class Offsets:
    """One explicit range."""

    range: Range

    def ranges(self, opened: Opened, topics: Sequence[str], choice: Choice) -> list[Range]:
        """The range itself. Raises NotMirrored, BadRange."""
        item, name = self.range, opened.flow.name
        if item.topic not in topics:
            raise NotMirrored(name, (item.topic,))
        everything, _ = ranges_of(opened, [item.topic], 0, 2**62)
        there = {found.key: found for found in everything}.get(item.key)
        if not item.start < item.end:
            raise BadRange(name, item.topic, item.partition, item.start, item.end, "it is empty: `end` is exclusive")
        if there is None or item.end > there.end:
            reason = f"the source ends at {there.end if there else 0}"
            raise BadRange(name, item.topic, item.partition, item.start, item.end, reason)
        return [item]


Places = Interval | Offsets


def replicate_ranges(
    place: Deployment, name: str, window: str, spark_url: str, choice: Choice, places: Places, *, before: bool
) -> WindowResult:
    """Replicate, in order, what lies beyond progress up to the ends of the ranges, in as many windows as it takes.

    ``before``: also what lies before the first replicated offset, into topics of its own, where the flow wants that.
    """

    def until(prepared: Prepared) -> Mapping[TopicPartition, int]:
        ranges = places.ranges(prepared.opened, sorted(prepared.topics), choice)
        log.info("%d partitions have records in the range.", len(ranges))
        return {item.key: item.end for item in ranges}

    number = 1
    result = replicate(place, name, window, spark_url, choice, until)
    while result.is_cut:
        number += 1
        result = replicate(place, name, f"{window}-{number}", spark_url, choice, until)
    if before:
        _backfill(place, name, window, spark_url, choice, places)
    return result


def _backfill(place: Deployment, name: str, window: str, spark_url: str, choice: Choice, places: Places) -> None:
    with opened_flow(place, name, choice) as opened:
        if backfill_of(opened) is None:
            return
        ranges = before_the_first(opened, places.ranges(opened, sorted(look(opened.flow).topics), choice))
        number = 0
        with on_spark(opened, spark_url, log.info) as (slots, execute):
            while ranges:
                number += 1
                called = f"{window}-before-{number}"
                result = when_free(partial(backfill, opened, ranges, execute, slots, window=called, tell=log.info))
                if result is None:
                    log.info("What lies before the first replicated offset was replicated before.")
                    return
                tell_result(result)
                if not result.is_cut:
                    return


def compare_ranges(
    place: Deployment, name: str, choice: Choice, places: Places, title: str, *, strict: bool,
    show: Callable[[Path], None], tell: Callable[[str], None] = log.info,
) -> None:  # fmt: skip
    """Compare the ranges with the target; ``show`` hears of the report's page. ``strict``: what can't be replicated fails too.

    Raises AuditFailed, after the report is written.
    """
    with opened_flow(place, name, choice) as opened:
        ranges = places.ranges(opened, sorted(look(opened.flow).topics), choice)
        beside = backfill_of(opened)
        # Records that came into an interval since its window ended are the next window's.
        missing = strict and isinstance(places, Offsets) and not choice.dry_run
        found = audit(
            opened, ranges, refuse_before=strict and beside is None, refuse_missing=missing, tell=tell
        )  # fmt: skip
        if beside is not None:
            parts = before_the_first(opened, ranges)
            found = joined(
                found,
                audit(beside, parts, refuse_before=False, refuse_missing=strict and not choice.dry_run, tell=tell),
            )
    page = write_page(found, place.data_docs / "audits" / name.replace("->", "."), f"{name}: {title}", title)
    show(page)
    log.info("Report: the button of this name. In short:\n%s", as_text(found))
    if found.errors:
        if all(error.transient for error in found.errors):
            raise found.errors[0]
        raise AuditFailed(name, tuple(map(str, found.errors)))

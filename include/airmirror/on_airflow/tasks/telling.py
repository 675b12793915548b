"""The output of tasks: the errors that they end with, the way out last, and the lines of their logs. Loaded in tasks only."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Sequence
from textwrap import fill

from airmirror.errors import AirmirrorError, command, counted, listed, named
from airmirror.flows.prepare import Opened, Prepared, dry_run
from airmirror.flows.selection import Selection
from airmirror.on_airflow.question import runs_about
from airmirror.quality import rows as gate_rows
from airmirror.quality.verdict import Validation
from airmirror.windows.errors import GateFailed, PartitionHeld
from airmirror.windows.judging import Verdict, Verification
from airmirror.windows.progress import CopyProgress
from airmirror.windows.results import WindowResult
from airmirror.wire.mappings import Decision

log = logging.getLogger(__name__)

MOST_NAMED = 5  # partitions of one reason that are named
WIDTH = 68  # what Airflow's page of a log shows of an error's lines without scrolling


class PartitionsFailed(AirmirrorError):
    """Partitions of a window that were not replicated, for an error of their own."""

    flow: str
    window: str
    errors: tuple[str, ...]
    final: bool

    @property
    def transient(self) -> bool:  # type: ignore[override]
        return not self.final

    def __str__(self) -> str:
        told = listed([_wrapped(error) for error in self.errors])
        return f"flow {self.flow!r}: {counted(len(self.errors), 'partition')} not replicated:\n{told}"


class NotVerified(AirmirrorError):
    """Partitions that did not pass the gate; the others have advanced.

    ``failed`` have just failed, of ``still`` earlier runs have told; ``new`` and ``known``: a line for each of their reasons.
    ``held``: all of them, with the last offset in question; ``runs``: of ``decide.…`` about them (``question.runs_about``).
    """

    flow: str
    window: str
    failed: int
    still: int
    new: tuple[str, ...]
    known: tuple[str, ...]
    held: tuple[tuple[str, int, int], ...] = ()
    runs: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.failed and self.still:
            said = f"{counted(self.failed, 'partition')} did not pass the gate, {self.still} more still held"
        elif self.still:
            said = f"{counted(self.still, 'partition')} still held by the gate, nothing new"
        else:
            said = f"{counted(self.failed, 'partition')} did not pass the gate"
        lines = [_wrapped(line) for line in (*self.new, *self.known)]
        again = command("verify", flow=self.flow)
        return (
            f"flow {self.flow!r}: {said}\n{listed(lines)}\n"
            f"To decide: Required Actions of {decide_id_of(self.flow)}.\nOr mend the cause, then: {again}"
        )


def not_verified(
    flow: str, window: str, verification: Verification, decisions: Iterable[Decision] = (), users: Collection[str] = ()
) -> NotVerified:
    """The error of a judgement with partitions that did not pass for good. ``decisions``: what people have decided so far;
    ``users``: who may decide, none: all."""
    failed = [verdict for verdict in verification.verdicts if verdict.error is not None]
    final = [verdict for verdict in failed if verdict.error is not None and not verdict.error.transient]
    new, known = ([each for each in failed if each.is_known is is_known] for is_known in (False, True))
    held = tuple((verdict.topic, verdict.partition, verdict.offset) for verdict in final)
    lines = {"new": _by_reason(new), "known": _by_reason(known)}
    runs = runs_about(held, decisions, users)
    return NotVerified(flow, window, len(new), len(known), **lines, held=held, runs=runs)


def _wrapped(line: str) -> str:
    """A line as wide as Airflow shows it; what stands between backquotes, a command to copy, stays on one."""
    whole = re.sub(r"`[^`]*`", lambda quoted: quoted[0].replace(" ", "\0"), line)
    lines = fill(whole, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return lines.replace("\0", " ")


def _by_reason(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """A line for each reason, with the partitions that it is of: what many have in common is said once."""
    spans: dict[str, list[str]] = {}
    for verdict in verdicts:
        span = verdict.error.span if isinstance(verdict.error, GateFailed) else ""
        before, _, after = str(verdict).partition(span) if span else (str(verdict), "", "")
        spans.setdefault(f"{before}\0{after}", []).append(span)
    return tuple(said.replace("\0", named(of, MOST_NAMED, "; "), 1) for said, of in spans.items())


class NotMirrored(AirmirrorError, bad_input=True):
    """Topics that a run was to be narrowed down to and that the flow does not mirror."""

    flow: str
    topics: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"flow {self.flow!r} does not mirror {', '.join(self.topics)}: name topics of the source that its `topics` and "
            "`topics.exclude` let pass"
        )


def decide_id_of(flow: str) -> str:
    return f"decide.{flow.replace('->', '.')}"


def phase(name: str) -> None:
    log.info("Now: %s.", name)


def tell_progress(progress: CopyProgress) -> None:
    """Log how far a window has come, if it has come further."""
    left = "" if progress.seconds_left is None else f", about {progress.seconds_left:.0f} s left"
    log.info("Committed so far: %s%s.", progress.summary, left)


def tell_plan(opened: Opened, selection: Selection) -> None:
    """Log what a window would do. Writes only the ledger."""
    topics, planned = dry_run(opened)
    for new in topics.create:
        log.info("Would create %s with %s.", new.name, counted(new.partitions, "partition"))
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
        if selection.takes(item.key) and (item.has_work or item.error):
            what = item.error or f"offsets {item.start:,} to {item.end - 1:,} ({item.end - item.start:,})"
            log.info("Would replicate %s to %s: %s.", item.key, item.remote_topic, what)
    log.info("A dry run: nothing was written.")


def tell_topics(prepared: Prepared) -> None:
    log.info("Mirrored topics, whose remote topics are there: %d.", len(prepared.topics))
    for reason in prepared.refused:
        log.warning("Refused: %s", reason)


def tell_result(result: WindowResult) -> None:
    for row in result.rows:
        if isinstance(row.error, PartitionHeld):
            log.warning("Left out: %s", row.error.what)
    partitions, copy_seconds = counted(result.partitions, "partition"), result.phases.get("copy", 0.0)
    if result.has_waited:
        log.info("Followed %s for %.0f s; nothing came.", partitions, copy_seconds)
        return
    if all(isinstance(row.error, PartitionHeld) for row in result.rows):
        log.info("Nothing new in %s; Spark was not needed. (%.1f s)", partitions, result.seconds)
        return
    rate = result.copied / result.seconds if result.seconds else 0.0
    log.info(
        "Replicated %s records, %.1f MB of %s in %.1f s (%s records/s); copy %.1f s.",
        f"{result.copied:,}",
        result.bytes / 1e6,
        counted(len(result.rows), "partition"),
        result.seconds,
        f"{rate:,.0f}",
        copy_seconds,
    )
    lost = ("lost",) if any(row.lost for row in result.rows) else ()
    columns = ("topic", "partition", "remote_topic", "source_start", "source_end", "copied", *lost, "lag", "outcome")
    ordered = sorted(result.rows, key=lambda row: not row.failed)  # what failed comes first
    shown = [
        {name: getattr(row, name) for name in columns}
        | ({"outcome": "held"} if isinstance(row.error, PartitionHeld) else {})
        for row in ordered
    ]
    log.info("Partitions of the window:\n%s", gate_rows.table(shown, columns))
    if result.followed is not None:
        log.info("%s", result.followed)
    if result.is_cut:
        log.info("The window was cut (window.max.ms, window.max.bytes, or ended early); the next run starts at once.")


def tell_verification(verification: Verification, validation: Validation | None) -> None:
    """Log what the gate passed, its warnings, and the rows that did not pass."""
    passed = [verdict for verdict in verification.verdicts if verdict.error is None]
    log.info(
        "Judged %s: %d passed and advanced (%s records), %d not.",
        counted(len(verification.verdicts), "partition"),
        len(passed),
        f"{sum(verdict.records for verdict in passed):,}",
        len(verification.verdicts) - len(passed),
    )
    for warning in validation.warnings if validation else ():
        log.warning("Warning of the gate: %s", warning)
    failed = {verdict.key for verdict in verification.verdicts if verdict.error is not None}
    if failed:
        rows = [finding.row() for finding in verification.findings if finding.key in failed]
        log.info("Partitions that did not pass:\n%s", gate_rows.table(rows))

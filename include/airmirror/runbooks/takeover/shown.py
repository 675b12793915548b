"""A take-over as people and programs are shown it: its plan, its outcome, and what MirrorMaker 2 had copied before."""

from __future__ import annotations

from collections.abc import Sequence

from airmirror.errors import command, counted
from airmirror.flows.prepare import Opened
from airmirror.report.document import Document, Finding, Row, Section, nothing_stops
from airmirror.rows import rows_of
from airmirror.runbooks.runbook import Progress, Ran
from airmirror.runbooks.shown import differences, judged
from airmirror.runbooks.takeover.copies import Continued, check_whole
from airmirror.runbooks.takeover.exact import ComparedCopies, make_exact, told
from airmirror.runbooks.takeover.order import TakeoverOrder
from airmirror.runbooks.takeover.plan import TakeoverPlan, takeover_plan
from airmirror.times import utc

PARTITION = "topic partition remote_topic last_of_mirrormaker continues_at source_end recognised twice"


def planned(opened: Opened, order: TakeoverOrder, progress: Progress) -> Document:
    """The document of a plan as things are now. Raises TakenOverAsAWhole."""
    check_whole(opened, order)
    progress.phase("comparing both clusters")
    return shown_plan(takeover_plan(opened))


def ended(opened: Opened, order: TakeoverOrder, ran: Ran) -> Document:
    rows: Sequence[Continued] = ran.gave["take_over"]
    wrong = [row for row in rows if row.error is not None]
    then = command("run-window", flow=opened.flow.name)
    return Document(
        kind="takeover",
        about=f"Take-over of {opened.flow.name}",
        headline=f"{_counts(opened.flow.name, rows)} The next window copies what comes after: {then}, or its DAG.",
        is_good=not wrong,
        asked={"flow": opened.flow.name},
        numbers={"milliseconds": round(ran.seconds * 1000)},
        findings=_errors(rows),
        sections=[_partitions(rows), _wrong(rows)],
        by=order.by,
        reason=order.reason,
    )


def shown_plan(found: TakeoverPlan) -> Document:
    last = "it has written none yet" if found.progress_ms is None else f"last written {utc(found.progress_ms)}"
    incidents: list[Row] = [
        {"topic": key.topic, "partition": key.partition, "found": each.what, "is_loss": each.is_loss}
        for key, its in sorted(found.histories.items())
        for each in its
    ]
    groups = rows_of(
        found.groups,
        "group topic partition position after_the_take_over",
        after_the_take_over=lambda each: each.why or "exact",
    )
    syncs: list[Row] = [
        {"topic": key.topic, "partition": key.partition, "source": sync.source, "target": sync.target}
        for key, sync in sorted(found.syncs.items())
    ]
    running = [Finding("warn", "MirrorMaker 2 is stopped", each) for each in found.running]
    skipped = [f"{each['topic']}-{each['partition']}: {each['found']}" for each in incidents if each["is_loss"]]
    history = command("takeover", "run", "--step", "history", "--reason", "…", flow=found.flow)
    way_out = f"a take-over does not copy it; after it {history} lists what the source still has of it"
    findings = [
        Finding("ok", "MirrorMaker 2's progress is known", f"in {', '.join(found.progress_in)}: {last}"),
        *(running or [Finding("ok", "MirrorMaker 2 is stopped", "none of its workers is seen on the target")]),
        judged("stop", "MirrorMaker 2 skipped no record", skipped, "none, by its offset syncs", "it did", way_out),
        *_errors(found.partitions),
        *(Finding("warn", "there are no warnings", each) for each in found.warnings),
    ]
    then = command("takeover", "run", "--reason", "…", "--yes", flow=found.flow)
    return Document(
        kind="takeover plan",
        about=f"Take-over plan of {found.flow}",
        headline=f"{_counts(found.flow, found.partitions)} Stop MirrorMaker 2, then {then}",
        is_good=nothing_stops(findings),
        asked={"flow": found.flow},
        findings=findings,
        sections=[
            _partitions(found.partitions),
            Section(
                "history",
                incidents,
                "What MirrorMaker 2 did before, by its offset syncs",
                brief="topic partition found",
                empty="nothing unusual",
            ),
            Section("groups", groups, "Consumer groups", brief="*", empty="none has committed offsets"),
            differences(found.drift),
            Section("syncs", syncs, "Newest offset syncs"),
        ],
    )


def compared(opened: Opened, order: TakeoverOrder, progress: Progress) -> Document:
    """The document of what MirrorMaker 2 had copied before the take-over. Nothing is written but the ledger."""
    rows = make_exact(opened, order.topics, write=False, wait=order.wait, tell=progress.phase)
    return shown_history(opened.flow.name, rows)


def shown_history(flow: str, rows: Sequence[ComparedCopies]) -> Document:
    """The same as a document; not good where something was not copied, or can't be compared."""
    partitions = rows_of(
        rows,
        "topic=key.topic partition=key.partition exact_from would_be_from records twice left_as_it_is=why_not",
        exact_from=lambda row: row.exact_from[0],
        would_be_from=lambda row: row.exact_from[1],
        records=lambda row: 0 if row.history is None else row.history.copied,
        twice=lambda row: 0 if row.history is None else row.history.twice,
    )
    found: list[Row] = [{"found": each} for row in rows for each in told(row)]
    return Document(
        kind="takeover history",
        about=f"What MirrorMaker 2 had copied before: {flow}",
        headline=f"{flow}: {counted(len(rows), 'partition')} compared.",
        is_good=not any(row.needs_somebody for row in rows),
        asked={"flow": flow},
        sections=[
            Section("partitions", partitions, "Partitions", brief="*", empty=""),
            Section("found", found, "What was found", brief="*", empty=""),
        ],
    )


def _counts(flow: str, rows: Sequence[Continued]) -> str:
    wrong = sum(row.error is not None for row in rows)
    return (
        f"{flow}: {counted(len(rows) - wrong, 'partition')} can continue after MirrorMaker 2's copies, {wrong} can't."
    )


def _errors(rows: Sequence[Continued]) -> list[Finding]:
    return [Finding("stop", "every partition can continue", str(row.error)) for row in rows if row.error is not None]


def _partitions(rows: Sequence[Continued]) -> Section:
    told = rows_of(
        rows,
        "topic partition remote_topic last_of_mirrormaker continues_at source_end=end recognised=copied twice=again "
        "exact_from",
        last_of_mirrormaker=lambda row: None if row.recorded < 0 else row.recorded,
        continues_at=lambda row: None if row.error is not None else row.start,
        exact_from=lambda row: None if row.since < 0 else row.since,
    )
    return Section("partitions", told, "Where it continues", brief=PARTITION, empty="")


def _wrong(rows: Sequence[Continued]) -> Section:
    """The partitions that could not be taken over: a terminal shows no findings of an outcome."""
    told: list[Row] = [{"error": str(row.error)} for row in rows if row.error is not None]
    return Section("errors", told, "Not taken over", brief="*", empty="")

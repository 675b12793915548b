"""A failback as people and programs are shown it: its plan, and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from airmirror.errors import counted
from airmirror.flows.prepare import Opened
from airmirror.report.document import Document, Row, Section, nothing_stops
from airmirror.rows import row_of, rows_of
from airmirror.runbooks.draining import undrained
from airmirror.runbooks.failback.divergence import Divergence, Written
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.outcome import FailbackOutcome, outcome_of
from airmirror.runbooks.failback.pair import Pair
from airmirror.runbooks.failback.plan import FROZEN, FailbackPlan, failback_plan
from airmirror.runbooks.failback.rescue import to_rescue
from airmirror.runbooks.failback.steps import look
from airmirror.runbooks.runbook import Progress, Ran
from airmirror.runbooks.shown import differences

MOST_RUNS = 3  # of a partition in one cell; the section of its offsets has all

NEVER = (
    "Records of the source, by their offsets there. `airmirror failback run --step rescue` copies them to the target."
)
WAITS = "Of partitions that the flow has copied nothing of yet, by their offsets on the source."
SINCE = "Records of others after the flow's last one, by their offsets on the target."


def planned(opened: Opened, order: FailbackOrder, progress: Progress) -> Document:
    progress.phase("reading both clusters")
    return shown_plan(failback_plan(opened, order.topics))


def looked(pair: Pair, order: FailbackOrder, progress: Progress) -> Document:
    """The same of an order: where partitions would begin to return, and which records differ; not good where the order does not
    accept them. Raises what ``steps.look`` does."""
    progress.phase("reading both clusters")
    begins, differ = look(pair, order)
    found = planned(pair.forward, order, progress)
    returns = rows_of(
        begins,
        "topic=key.topic partition=key.partition from_offset=end returns_to=facts.remote_topic after_offset",
        after_offset=lambda each: each.target_end - 1,
    )
    runs = [
        {"topic": each.facts.topic, "partition": each.facts.partition} | asdict(run)
        for each in differ
        for run in each.runs
    ]
    sections = [
        Section("returns", returns, "Returns", brief="*", empty="it has begun already"),
        Section("differ", runs, "Differs on both sides", brief="*", empty=""),
    ]
    return replace(found, is_good=not differ, sections=[*sections, *found.sections])


def to_be_rescued(pair: Pair, order: FailbackOrder, progress: Progress) -> Document:
    progress.phase("reading both clusters")
    plan = failback_plan(pair.forward, order.topics)
    rows = rows_of(
        to_rescue(plan, order),
        "topic=row.topic partition=row.partition records=row.never.records offsets would_be_copied_to=into",
        offsets=lambda each: runs_told(each.row.never),
    )
    section = Section("rescue", rows, "Rescue", brief="*", empty="nothing is left")
    found = shown_plan(plan)
    return replace(found, is_good=not rows, sections=[section, *found.sections])


def left_to_return(pair: Pair, order: FailbackOrder, progress: Progress) -> Document:
    """The document of what has not returned by now, before applications are cut over."""
    names = pair.returning(order.topics)
    rows = [{"left": each} for each in (undrained(pair.reverse, names) if names else ())]
    return Document(
        kind="failback",
        about=f"Failback of {pair.flow.name}",
        headline=f"{pair.reverse.flow.name}: {counted(len(rows), 'partition')} with more to return.",
        is_good=True,
        asked={"flow": pair.flow.name, "topics": list(order.topics)},
        sections=[Section("left", rows, "What is left to return", brief="*", empty="all has returned")],
    )


def ended(pair: Pair, order: FailbackOrder, ran: Ran) -> Document:
    return shown_outcome(outcome_of(pair, order, ran.gave["move_groups"], ran.seconds))


def shown_plan(plan: FailbackPlan) -> Document:
    return Document(
        kind="failback plan",
        about=f"Failback plan of {plan.flow}",
        headline=plan.headline,
        is_good=nothing_stops(plan.findings),
        asked={"flow": plan.flow},
        numbers=_numbers(plan),
        findings=plan.findings,
        sections=_sections(plan, brief=True),
        made_ms=plan.made_ms,
    )


def shown_outcome(done: FailbackOutcome) -> Document:
    """The document of a failback that was carried out: what was done, and then the plan as things are now."""
    came = rows_of(done.returned, "topic partition from=remote_topic records left_on_the_source=behind resumes_at")
    moves = [asdict(each) | {"before": None if each.before < 0 else each.before} for each in done.moves]
    left = [dict(zip(("group", "topic", "partition", "why"), each, strict=True)) for each in done.left]
    accepted = rows_of(done.accepted, "topic partition by reason what=problem")
    sections = [
        Section("returned", came, "Returned", brief="*", empty="nothing since"),
        Section("moves", moves, "Positions of groups", "None: the group had no position before."),
        Section("left", left, "Groups that were left", brief="*"),
        Section("accepted", accepted, "Accepted: not equal on both sides, and in no account", brief="*"),
    ]
    return Document(
        kind="failback",
        about=f"Failback of {done.plan.flow}",
        headline=headline(done),
        is_good=done.is_good,
        asked={
            "flow": done.plan.flow,
            "topics": list(done.order.topics),
            "leave": done.order.leave,
            "inexact": done.order.inexact,
            "accept_loss": done.order.accept,
        },
        numbers={"records returned": sum(each.records for each in done.returned)}
        | _numbers(done.plan)
        | {"milliseconds": round(done.seconds * 1000)},
        findings=[each for each in done.plan.findings if each.what != FROZEN],  # it is unfrozen
        sections=[*sections, *_sections(done.plan, brief=False)],
        by=done.order.by,
        reason=done.order.reason,
    )


def headline(done: FailbackOutcome) -> str:
    behind = sum(each.behind for each in done.returned)
    stay = f"; {counted(behind, 'record')} of the source stay there, not replicated" if behind else ""
    if partitions := {(each.topic, each.partition) for each in done.accepted}:
        stay += f"; records of {counted(len(partitions), 'partition')} differ on both sides, which was accepted"
    return (
        f"{done.plan.flow} failed back in {done.seconds:.0f} s: "
        f"{sum(each.records for each in done.returned):,} records returned to {counted(len(done.returned), 'partition')}, "
        f"{counted(len(done.moves), 'position')} of groups moved, {len(done.left):,} left{stay}. "
        f"{', '.join(done.order.topics) + ':' if done.order.topics else 'The flow is'} unfrozen."
    )


def runs_told(written: Written) -> str:
    runs = [str(first) if first == last else f"{first} to {last}" for first, last in written.runs[:MOST_RUNS]]
    more = f" and {len(written.runs) - MOST_RUNS:,} more runs" if len(written.runs) > MOST_RUNS else ""
    return ", ".join(runs) + more


def _numbers(plan: FailbackPlan) -> dict[str, int]:
    return {
        "records not replicated": plan.never,
        "records rescued": plan.rescued,
        "records written on the target since": plan.since,
    }


def _sections(plan: FailbackPlan, *, brief: bool) -> list[Section]:
    """The sections of a plan; ``brief``: a terminal shows them too."""
    partitions = rows_of(
        plan.partitions,
        "topic partition replicated=replicated_end source_has not_replicated=never.records rescued since=since.records "
        "remote_topic lost unverified open_from is_equal what_happened=problem",
        source_has=lambda each: None if each.kept_end < 0 else each.kept_end,
        open_from=lambda each: None if each.open_from < 0 else each.open_from,
    )
    columns = "topic partition replicated source_has not_replicated rescued since" if brief else ""
    freeze = [] if plan.freeze is None else [asdict(plan.freeze)]
    return [
        Section("partitions", partitions, "Partitions", brief=columns, empty="nothing was replicated"),
        *_runs("not_replicated", "Not replicated", NEVER, plan.partitions, lambda each: each.never, brief=brief),
        *_runs(
            "waits", "Copied when the flow is unfrozen", WAITS, plan.partitions, lambda each: each.waits, brief=brief
        ),
        *_runs("since", "Written on the target since", SINCE, plan.partitions, lambda each: each.since, brief=brief),
        Section("freeze", freeze, "Frozen"),
        differences(plan.drift),
    ]


def _runs(
    name: str, title: str, about: str, rows: Sequence[Divergence], of: Callable[[Divergence], Written], brief: bool
) -> list[Section]:
    """Records of one side: a row a partition, and every run of offsets."""
    some = [(each.remote_topic if name == "since" else each.topic, each.partition, of(each)) for each in rows]
    some = [each for each in some if each[2].records]
    sums = [
        {"topic": topic, "partition": number}
        | row_of(it, "records offsets bytes=size earliest_ms latest_ms", offsets=runs_told)
        for topic, number, it in some
    ]
    runs: list[Row] = [
        {"topic": topic, "partition": number, "first": first, "last": last}
        for topic, number, it in some
        for first, last in it.runs
    ]
    columns = "topic partition records offsets earliest_ms latest_ms" if brief else ""
    return [
        Section(name, sums, title, about, brief=columns, empty=""),
        Section(f"{name}_offsets", runs, f"{title}: every run of offsets"),
    ]

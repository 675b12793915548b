"""``airmirror takeover plan`` and ``takeover run``: from MirrorMaker 2 to Airmirror, seen first, then done."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from airmirror.cli.flow_options import FlowOptions, flow_command
from airmirror.cli.options import (
    By,
    Yes,
    console,
)
from airmirror.cli.steps import telling
from airmirror.cli.tables import BAD, DOUBTFUL, GOOD, Cell, line, print_json, show, table
from airmirror.errors import command, counted
from airmirror.times import utc

if TYPE_CHECKING:
    from airmirror.runbooks.takeover.copies import Continued
    from airmirror.runbooks.takeover.exact import ComparedCopies
    from airmirror.runbooks.takeover.plan import TakeoverPlan

takeover_commands = typer.Typer(no_args_is_help=True, help="From MirrorMaker 2 to Airmirror, in the same topics.")

NUMBERS = ("partition", "MirrorMaker 2's last", "continues at", "source ends at", "recognised", "twice")


@takeover_commands.command("plan")
@flow_command
def plan(
    given: FlowOptions,
) -> None:
    """Look at a MirrorMaker 2, running or not, and show what a take-over would find; nothing is written. Exit status 1:
    something needs a person.
    """
    from airmirror.runbooks.takeover.plan import takeover_plan

    with given.opened(shows=True) as opened, console.status("comparing both clusters"):
        found = takeover_plan(opened)
    if given.as_json:
        print_json(console, found.as_dict())
    else:
        show(console, *shown_plan(found))
    if found.needs_somebody:
        raise typer.Exit(1)


@takeover_commands.command("run")
@flow_command
def run(
    given: FlowOptions,
    by: By,
    wait: Annotated[float, typer.Option(help="How many seconds to wait until MirrorMaker 2 is stopped.")] = 300.0,
    yes: Yes = False,
) -> None:
    """Wait until MirrorMaker 2 is stopped, then continue after its copies, also those since a hand-back; the next window
    copies what comes. Exit status 1: a partition could not be taken over.
    """
    from airmirror.runbooks.takeover.copies import copies_now, take_over_copies
    from airmirror.runbooks.takeover.stop import await_stopped

    with given.opened(shows=not yes) as opened, telling(console) as tell:
        name = opened.flow.name
        if yes:
            await_stopped(opened, wait, tell=tell)
            window = f"takeover-{uuid.uuid4().hex[:8]}"
            rows = take_over_copies(opened, by, window, tell)
        else:
            rows = copies_now(opened).rows
    if given.as_json:
        print_json(console, {"flow": name, "done": yes, "partitions": [row.as_dict() for row in rows]})
    else:
        show(console, _continued(f"{name}: taken over" if yes else f"{name}: would be taken over", rows))
        show(console, *_errors(rows), _next(name, yes))
    if any(row.error is not None for row in rows):
        raise typer.Exit(1)


@takeover_commands.command("history")
@flow_command
def history(
    given: FlowOptions,
    topic: Annotated[list[str] | None, typer.Option(help="Only these topics of the source.")] = None,
    wait: Annotated[float, typer.Option(help="How many seconds to wait for another window's claim.")] = 300.0,
    yes: Annotated[bool, typer.Option("--yes", help="Write the segments; else nothing is written.")] = False,
) -> None:
    """Compare what MirrorMaker 2 had copied before the take-over with the source, record by record, so that positions there
    become exact too; list what it has copied twice. Exit status 1: something was not copied, or can't be compared.
    """
    from airmirror.runbooks.takeover.exact import make_exact

    with given.opened(shows=not yes) as opened, telling(console) as tell:
        name = opened.flow.name
        rows = make_exact(opened, topic or (), write=yes, wait=wait, tell=tell)
    if given.as_json:
        print_json(console, {"flow": name, "done": yes, "partitions": [row.as_dict() for row in rows]})
    else:
        show(console, *shown_history(name, rows, done=yes))
    if any(row.is_lossy or row.as_dict()["reason"] for row in rows):
        raise typer.Exit(1)


def shown_plan(found: TakeoverPlan) -> list[RenderableType]:
    """The plan for people."""
    progress = "it has told none yet"
    if found.progress_ms is not None:
        progress = f"last written {utc(found.progress_ms)}"
    shown: list[RenderableType] = [f"MirrorMaker 2's progress is in {', '.join(found.progress_in)}: {progress}."]
    shown += [line("running", each, DOUBTFUL) for each in found.running] or [
        "None of its workers is seen on the target."
    ]
    shown.append(_continued(f"{found.flow}: where it would continue", found.partitions))
    shown += _errors(found.partitions)
    history: list[list[Cell]] = [
        [key.topic, key.partition, Text(incident.what, BAD if incident.is_loss else DOUBTFUL)]
        for key, its in sorted(found.histories.items())
        for incident in its
    ]
    title = f"{found.flow}: what MirrorMaker 2 did before, by its offset syncs"
    shown.append(table(title, ("topic", "partition", "found"), history, right=("partition",), empty="nothing unusual"))
    groups: list[list[Cell]] = [
        [each.group, each.topic, each.partition, each.position, Text("exact", GOOD) if each.exact else each.why]
        for each in found.groups
    ]
    of_groups = ("group", "topic", "partition", "position", "after the take-over")
    title = f"{found.flow}: consumer groups"
    shown.append(table(title, of_groups, groups, right=("partition", "position"), empty="none has committed offsets"))
    drift: list[list[Cell]] = [
        [each.topic, each.what, each.source or "", each.target or "", each.outcome, each.reason] for each in found.drift
    ]
    columns = ("topic", "what", "source", "target", "will be", "why")
    shown.append(table(f"{found.flow}: configs and ACLs that differ", columns, drift, empty="nothing differs"))
    shown += [line("warning", warning, DOUBTFUL) for warning in found.warnings]
    then = command("takeover", "run", "--yes", flow=found.flow)
    shown.append(f"Nothing was written. Stop MirrorMaker 2, then {then}")
    return shown


def _continued(title: str, rows: Sequence[Continued]) -> RenderableType:
    cells: list[list[Cell]] = [
        [
            row.topic,
            row.partition,
            row.remote_topic,
            None if row.recorded < 0 else row.recorded,
            None if row.error is not None else row.start,
            row.end,
            row.copied,
            row.again,
            Text("no", BAD) if row.error is not None else Text("yes", GOOD),
        ]
        for row in rows
    ]
    columns = ("topic", NUMBERS[0], "remote topic", *NUMBERS[1:], "goes on")
    return table(title, columns, cells, right=NUMBERS, empty="the flow has no topics")


def _errors(rows: Sequence[Continued]) -> list[Text]:
    return [line("error", row.error) for row in rows if row.error is not None]


def _next(flow: str, done: bool) -> str:
    if done:
        return f"The next window copies what comes after: {command('run-window', flow=flow)}, or its DAG."
    return f"Nothing was written. Stop MirrorMaker 2 and carry it out: {command('takeover', 'run', '--yes', flow=flow)}"


def shown_history(flow: str, rows: Sequence[ComparedCopies], *, done: bool) -> list[RenderableType]:
    """What was compared, for people: a table, then each run of records that is no single copy of the source's."""
    cells: list[list[Cell]] = []
    shown: list[RenderableType] = []
    for row in rows:
        found, place = row.history, f"{row.remote_topic}-{row.key.partition}"
        before, after = row.exact_from
        reason = row.reason or (found.refused if found is not None else "")
        numbers = (0, 0) if found is None else (found.copied, found.twice)
        cells.append([row.key.topic, row.key.partition, before, after, *numbers, Text(reason, BAD)])
        if found is None:
            continue
        for run in found.again:
            again = f"again the source's {run.source_first} to {run.source_end - 1}"
            what = f"{place}, offsets {run.target_first} to {run.target_end - 1}: {again}"
            shown.append(line("copied twice", what, DOUBTFUL))
        for first, end in found.strange:
            shown.append(line("not the source's", f"{place}, offsets {first} to {end - 1}", DOUBTFUL))
        if found.cleaned:
            what = f"{row.key}: {counted(found.cleaned, 'record')} that one side has, superseded by a later one of their key"
            shown.append(line("taken by a cleaner", what, GOOD))
        for gap in found.gaps:
            what = f"{row.key}, {gap.count or 'some'} records between source offsets {gap.first} and {gap.last}"
            shown.append(line("not copied", what, BAD))
    title = f"{flow}: what MirrorMaker 2 had copied before" + ("" if done else "; nothing was written")
    right = ("partition", "exact from", "now from" if done else "would be from", "records", "twice")
    columns = ("topic", *right, "left as it is")
    top = table(
        title,
        columns,
        cells,
        right=right,
        empty="the flow has copied nothing yet: " + command("takeover", "run", flow=flow),
    )
    if done:
        return [top, *shown]
    return [top, *shown, f"Carry it out: {command('takeover', 'history', '--yes', flow=flow)}"]

"""``airmirror failback``: what diverged while a source was gone, the rescue of what never crossed, and the way back."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from airmirror.cli.flow_options import FlowOptions, flow_command
from airmirror.cli.options import (
    By,
    Yes,
    console,
)
from airmirror.cli.plans import check_place, end_outcome, end_plan, report_base, show_put_back
from airmirror.cli.report import KeyFile, signer_of
from airmirror.cli.steps import telling
from airmirror.cli.tables import DOUBTFUL, GOOD, Cell, line, print_json, show, table
from airmirror.errors import counted

if TYPE_CHECKING:  # every command would load them at its start
    from airmirror.runbooks.failback.plan import FailbackPlan
    from airmirror.runbooks.failback.rescue import ToRescue
    from airmirror.windows.continuing import Continuation
    from airmirror.windows.resets import Reset

failback_commands = typer.Typer(no_args_is_help=True, help="Fail back to the source of a flow, when it is there again.")


@failback_commands.callback()
def failback() -> None:
    """Fail back to the source of a flow, when it is there again."""


@failback_commands.command("plan")
@flow_command
def plan(
    given: FlowOptions,
    write: Annotated[
        Path | None, typer.Option(help="Write the whole plan as PATH.html and PATH.json, over what is there.")
    ] = None,
    key: KeyFile = None,
) -> None:
    """Show what diverged since a failover: records of the source that never crossed, records written on the target since.

    Both clusters are read; nothing is written but the ledger. Exit status: 0 nothing diverged, 1 something did, 2 bad input.
    """
    from airmirror.runbooks.failback.plan import failback_plan
    from airmirror.runbooks.failback.shown import shown_plan

    check_place(write)
    signs = signer_of(key)
    with given.opened(shows=True) as opened, console.status("reading both clusters"):
        found = shown_plan(failback_plan(opened))
    end_plan(found, write, signs, given.as_json)


@failback_commands.command("rescue")
@flow_command
def rescue(
    given: FlowOptions,
    reason: Annotated[str, typer.Option(help="Why; it is kept with the account of what was rescued.")],
    by: By,
    topic: Annotated[list[str] | None, typer.Option("--topic", help="Only this source topic; again for more.")] = None,
    yes: Yes = False,
) -> None:
    """Copy records that never crossed to <remote topic>.rescued.<date> on the target, with headers of their origin.

    Each is copied once: run again, it does what is left. Exit status: 0 nothing is left, 1 something is, 2 bad input.
    """
    from airmirror.runbooks.failback import rescue as rescuing
    from airmirror.runbooks.failback.plan import failback_plan
    from airmirror.runbooks.failback.shown import shown_plan

    order = rescuing.RescueOrder(reason, by, tuple(topic or ()))
    with given.opened(shows=not yes) as opened, telling(console) as tell:
        if yes:
            chosen, found = rescuing.rescue(opened, order, tell)
        else:
            found = failback_plan(opened)
            chosen = rescuing.to_rescue(found, order)
    if given.as_json:
        rows = [
            {
                "topic": each.row.topic,
                "partition": each.row.partition,
                "into": each.into,
                "records": each.row.never.records,
                "runs": each.row.never.runs,
            }
            for each in chosen
        ]
        print_json(console, {"done": yes, "rescue": rows, "plan": shown_plan(found).as_dict()})
    else:
        _show_rescue(found, chosen, yes)
    if found.never:
        raise typer.Exit(1)


@failback_commands.command("run")
@flow_command
def run(
    given: FlowOptions,
    reason: Annotated[str, typer.Option(help="Why; it is kept with what is decided.")],
    by: By,
    leave: Annotated[
        bool,
        typer.Option("--leave", help="Records that never crossed, and were not rescued, stay on the source alone."),
    ] = False,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", help="A topic of the source; again for more. All but what was named if not given."),
    ] = None,
    begin: Annotated[
        bool, typer.Option("--begin", help="Only let records return, while applications go on; switch in another run.")
    ] = False,
    wait: Annotated[
        float,
        typer.Option(help="How many seconds to wait until applications have stopped, and until all has returned."),
    ] = 300.0,
    inexact: Annotated[
        bool, typer.Option("--inexact", help="Also where groups do not go on at the very next record.")
    ] = False,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Records that differ on both sides stay as they are, in no account; without --yes they are listed.",
        ),
    ] = False,
    write: Annotated[
        Path | None,
        typer.Option(help="Write the report as PATH.html and PATH.json; failback.<flow>.<time> by default."),
    ] = None,
    key: KeyFile = None,
    yes: Yes = False,
) -> None:
    """Fail back to the source: what was written on the target since returns by the flow in the opposite direction, groups are
    moved back, the flow is open again. Killed and run again, it does what is left. Without --yes it shows where records would
    begin to return. Exit status: 0 nothing is left, 1 something is, 2 bad input.
    """
    from airmirror.runbooks.failback import steps
    from airmirror.runbooks.failback.outcome import outcome_of
    from airmirror.runbooks.failback.pair import Pair, check_way_back
    from airmirror.runbooks.failback.shown import shown_outcome

    signs = signer_of(key)
    order = steps.FailbackOrder(reason, by, leave, wait, inexact=inexact, topics=tuple(topic or ()), accept=accept_loss)
    with (
        given.opened(shows=not yes) as forward,
        given.opened(check_way_back(forward), shows=not yes) as reverse,
        telling(console, "reading both clusters") as tell,
    ):
        pair = Pair(forward, reverse)
        if over := steps.nothing_left(pair, order.topics):
            show(console, f"{over}.")
            return
        if not yes or begin:
            begun, differ = (steps.return_step(pair, order, tell), []) if yes else steps.look(pair, order)
            _show_begun(reverse.flow.name, begun, differ, yes, given.as_json)
            if differ:
                raise typer.Exit(1)
            return
        made = shown_outcome(outcome_of(pair, order, steps.fail_back(pair, order, tell)))
    end_outcome(made, report_base(write, "failback", forward.flow.name, made.made_ms), signs, given.as_json)


@failback_commands.command("undo")
@partial(flow_command, has_json=False)
def undo(
    given: FlowOptions,
    reason: Annotated[str, typer.Option(help="Why; it is kept with what is decided.")],
    by: By,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", help="A topic of the source; again for more. All but what was named if not given."),
    ] = None,
    yes: Yes = False,
) -> None:
    """End a failback that is not over: nothing returns any more, groups go back to where they stood on the source, and the flow
    stays closed. As long as no group has gone on there. Exit status: 0 it is, or can be, undone, 1 it can't, 2 bad input.
    """
    from airmirror.runbooks.failback import undo as undoing
    from airmirror.runbooks.failback.pair import Pair, check_way_back

    with (
        given.opened(shows=not yes) as forward,
        given.opened(check_way_back(forward), shows=not yes) as reverse,
        telling(console) as tell,
    ):
        pair, topics = Pair(forward, reverse), topic or ()
        found = undoing.undo(pair, topics, reason=reason, by=by, tell=tell) if yes else undoing.undo_plan(pair, topics)
    show_put_back(found.flow, found.groups, found.reasons, yes)
    over = ", ".join(sorted(found.topics)) or "no topic"
    show(console, f"{found.flow}: {over}: nothing of it {'returns' if yes else 'would return'} any more.")
    show(console, *([] if yes else ["Nothing was written: --yes does it."]))
    if found.reasons:
        raise typer.Exit(1)


def _show_begun(flow: str, begun: list[Continuation], differ: list[Reset], done: bool, as_json: bool) -> None:
    """Show where partitions begin to return, and which records differ."""
    columns = ("topic", "partition", "from offset", "returns to", "after offset")
    rows: list[list[Cell]] = [
        [each.key.topic, each.key.partition, each.end, each.facts.remote_topic, each.target_end - 1] for each in begun
    ]
    if as_json:
        begins = [dict(zip(columns, row, strict=True)) for row in rows]
        runs = [
            {"topic": each.facts.topic, "partition": each.facts.partition} | asdict(run)
            for each in differ
            for run in each.runs
        ]
        print_json(console, {"flow": flow, "done": done, "begins": begins, "differ": runs})
        return
    right = ("partition", "from offset", "after offset")
    show(console, table(f"{flow}: what returns", columns, rows, right=right, empty="it has begun already"))
    for each in differ:
        count = sum(run.count for run in each.runs)
        where = f"{each.facts.key} and {each.facts.remote_topic}-{each.facts.partition}"
        show(console, line("differ", f"{where}: {counted(count, 'record')}: {_on_both_sides(each)}", DOUBTFUL))
    said = f"Windows of {flow} copy it back, and what comes." if done else "Nothing was written: --yes does it."
    show(console, said)


def _on_both_sides(reset: Reset) -> str:
    """Return every offset that differs, on the source and on the target."""
    runs = [(run.source_first, run.target_first, run.count) for run in reset.runs]
    return ", ".join(
        f"{first} ({there})" if count == 1 else f"{first} to {first + count - 1} ({there} to {there + count - 1})"
        for first, there, count in runs
    )


def _show_rescue(found: FailbackPlan, chosen: list[ToRescue], done: bool) -> None:
    from airmirror.runbooks.failback.shown import runs_told

    rows: list[list[Cell]] = [
        [each.row.topic, each.row.partition, each.row.never.records, runs_told(each.row.never), each.into]
        for each in chosen
    ]
    columns = ("topic", "partition", "records", "offsets", "copied to" if done else "would be copied to")
    show(
        console, table(f"{found.flow}: rescue", columns, rows, right=("partition", "records"), empty="nothing is left")
    )
    show(console, Text(found.headline, DOUBTFUL if found.never else GOOD))
    if chosen and not done:
        show(console, "Nothing was written: --yes does it.")

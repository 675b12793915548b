"""``airmirror migration``: what one would meet, its steps for a move group, and their undo."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airmirror.cli.flow_options import FlowOptions, flow_command
from airmirror.cli.options import (
    By,
    Yes,
    console,
)
from airmirror.cli.plans import check_place, end_plan
from airmirror.cli.rehearse import rehearse_move
from airmirror.cli.report import KeyFile, signer_of
from airmirror.cli.steps import telling
from airmirror.cli.tables import BAD, DOUBTFUL, GOOD, Cell, line, print_json, show, table
from airmirror.errors import named
from airmirror.runbooks.migration.order import STEPS, WITH_REVERSE, MoveOrder, usual

if TYPE_CHECKING:  # every command would load it at its start
    from airmirror.runbooks.migration.state import MoveState

MoveName = Annotated[str, typer.Option("--move", help="The move group: <flow>.move.<name>.… in the configuration.")]
Reason = Annotated[str, typer.Option(help="Why; it is kept.")]

migration_commands = typer.Typer(no_args_is_help=True, help="Move a cluster's topics and clients to another one.")


@migration_commands.callback()
def migration() -> None:
    """Move a cluster's topics and clients to another one."""


@migration_commands.command("plan")
@flow_command
def plan(
    given: FlowOptions,
    takes: Annotated[
        float, typer.Option(min=0.0, max=3650.0, help="Days that the migration takes, with the time to undo it.")
    ] = 7.0,
    write: Annotated[
        Path | None,
        typer.Option(help="Write the whole plan as PATH.html and PATH.json, over what is there."),
    ] = None,
    key: KeyFile = None,
) -> None:
    """Take inventory of both clusters, propose what must move together, and say of every rule whether it is met.

    Nothing is written but the ledger. Exit status: 0 nothing warns, 1 something does, 2 bad input.
    """
    from airmirror.runbooks.migration.plan import DAY_MS, migration_plan
    from airmirror.runbooks.migration.shown import shown_plan

    check_place(write)
    signs = signer_of(key)
    with given.opened(shows=True) as opened, telling(console, "looking") as tell:
        found = shown_plan(migration_plan(opened, round(takes * DAY_MS), tell))
    end_plan(found, write, signs, given.as_json)


@migration_commands.command("run")
@flow_command
def run(
    given: FlowOptions,
    move: MoveName,
    by: By,
    reason: Reason = "",
    step: Annotated[
        list[str] | None,
        typer.Option(
            "--step",
            help=f"Only this step; again for more: {', '.join(STEPS)}. Default: all but finish; reverse with move.reverse.",
        ),
    ] = None,
    wait: Annotated[
        float,
        typer.Option(min=0.0, help="How many seconds a step waits: for windows, for applications to stop, to start."),
    ] = 300.0,
    yes: Yes = False,
) -> None:
    """Move a move group, consumers first: each step looks again and does what is left, so it can be run again. Without --yes it
    shows how far the move group is. Exit status: 0 the next step can be taken, 1 it can't, 2 bad input.
    """
    from airmirror.runbooks.failback.pair import opened_back
    from airmirror.runbooks.migration.chosen import chosen_move
    from airmirror.runbooks.migration.state import move_state
    from airmirror.runbooks.migration.steps import do_step

    if unknown := set(step or ()) - set(STEPS):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: there is no such step", param_hint="--step")
    order = MoveOrder(move, reason, by, wait, "reverse" in (step or ()))
    with given.opened(shows=not yes) as opened, telling(console) as tell:
        if not yes:
            found = move_state(opened, chosen_move(opened, move), order)
        wanted = step or usual(reverse=opened.flow.settings.move_reverse)
        for each in [name for name in STEPS if name in wanted] if yes else ():
            with opened_back(opened, each in WITH_REVERSE, given.opened) as reverse:
                for text in do_step(opened, order, each, tell, reverse):
                    show(console, json.dumps({"step": each, "said": text}) if given.as_json else line(each, text, GOOD))
    if not yes:
        if given.as_json:
            print_json(console, found.as_dict())
        else:
            _show_state(found)
        if found.reasons or (found.is_closed and found.unfinished):
            raise typer.Exit(1)


@migration_commands.command("undo")
@partial(flow_command, has_json=False)
def undo(
    given: FlowOptions,
    move: MoveName,
    by: By,
    reason: Reason = "",
    fence: Annotated[
        bool,
        typer.Option(
            "--fence", help="Take down the fence alone: before a failback, after which applications write there again."
        ),
    ] = False,
    yes: Yes = False,
) -> None:
    """Put a move group's consumer groups back, open its topics and take its fence down, as long as producers have written nothing
    on the target. Exit status: 0 it can be undone, or was, 1 it can't, 2 bad input.
    """
    from airmirror.runbooks.failback.pair import opened_back
    from airmirror.runbooks.migration.chosen import chosen_move
    from airmirror.runbooks.migration.undo import fence_plan, undo_fence, undo_move, undo_plan

    order = MoveOrder(move, reason, by)
    with given.opened(shows=not yes) as opened, telling(console) as tell:
        chosen = chosen_move(opened, move)
        if fence:
            found = undo_fence(opened, chosen, order) if yes else fence_plan(opened, chosen)
        elif yes:
            with opened_back(opened, True, given.opened) as reverse:
                found = undo_move(opened, chosen, order, tell, reverse)
        else:
            found = undo_plan(opened, chosen, order)
    show(
        console,
        *(found.lines or [f"{move}: no fence stands" if fence else f"{move}: nothing was switched"]),
        *(line("stop", each, BAD) for each in found.reasons),
    )
    done = f"{move} has no fence any more." if fence else f"{move} is undone."
    show(console, done if yes else "Nothing was written: --yes does it.")
    if found.reasons:
        raise typer.Exit(1)


def _show_state(found: MoveState) -> None:
    partitions: list[list[Cell]] = [
        [each.topic, each.partition, each.remote_topic, each.verified, each.end] for each in found.partitions
    ]
    groups: list[list[Cell]] = [
        [
            each.group,
            each.positions,
            each.left,
            each.again,
            named(each.members, between="; ") or "none",
            str(each.there).removeprefix(f"{each.group}: "),
        ]
        for each in found.groups
    ]
    numbers = ("partition", "verified", "source's end")
    columns = ("topic", "partition", "remote topic", *numbers[1:])
    show(console, table(f"{found.flow}: {found.move.name}", columns, partitions, right=numbers), "")
    counts = ("positions", "to switch", "read again")
    there = ("members on the source", "on the target")
    show(console, table("groups", ("group", *counts, *there), groups, right=counts, empty="none"), "")
    show(console, *(line("stop", each, BAD) for each in found.reasons))
    show(console, *(f"last writer of {each}" for each in found.writers))
    show(console, *(f"fence: {each}" for each in found.fences))
    show(console, *(f"{found.move.name}: {each}" for each in found.access))
    if found.is_closed:
        show(console, *(line("not yet", each, DOUBTFUL) for each in found.unfinished))
    show(console, found.undo)
    show(console, found.headline, f"Nothing was written: --yes does it, --step {found.next} alone what comes next.")


migration_commands.command("rehearse")(rehearse_move)

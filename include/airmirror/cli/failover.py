"""``airmirror failover``: what one would mean now, carried out, and undone."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from airmirror.cli.flow_options import FlowOptions, flow_command
from airmirror.cli.options import (
    By,
    Yes,
    console,
)
from airmirror.cli.plans import check_place, end_dry_run, end_outcome, end_plan, report_base, show_put_back
from airmirror.cli.rehearse import rehearse
from airmirror.cli.report import KeyFile, signer_of
from airmirror.cli.steps import telling
from airmirror.cli.tables import show
from airmirror.runbooks.failover.ways import Way

failover_commands = typer.Typer(no_args_is_help=True, help="Fail over to the target of a flow.")


@failover_commands.callback()
def failover() -> None:
    """Fail over to the target of a flow."""


@failover_commands.command("plan")
@flow_command
def plan(
    given: FlowOptions,
    write: Annotated[
        Path | None, typer.Option(help="Write the whole plan as PATH.html and PATH.json, over what is there.")
    ] = None,
    key: KeyFile = None,
) -> None:
    """Show what a failover would mean now: what has crossed, where groups go on, what is missing. Also while the source is gone.

    Nothing is written but the ledger. Exit status: 0 nothing warns, 1 something does, 2 bad input.
    """
    from airmirror.runbooks.failover.plan import failover_plan
    from airmirror.runbooks.failover.shown import shown_plan

    check_place(write)
    signs = signer_of(key)
    with given.opened(shows=True) as opened, console.status("looking at both clusters"):
        found = shown_plan(failover_plan(opened))
    end_plan(found, write, signs, given.as_json)


@failover_commands.command("run")
@flow_command
def run(
    given: FlowOptions,
    way: Annotated[
        Way,
        typer.Option(help="planned: the source answers, nothing is lost. disaster: what the target alone can prove."),
    ],
    reason: Annotated[str, typer.Option(help="Why; it is kept with the closure.")],
    by: By,
    wait: Annotated[float, typer.Option(help="planned: how many seconds to wait until the source is quiet.")] = 300.0,
    inexact: Annotated[
        bool, typer.Option("--inexact", help="planned: also where groups do not go on at the very next record.")
    ] = False,
    anyway: Annotated[bool, typer.Option("--anyway", help="disaster: although the source answers.")] = False,
    write: Annotated[
        Path | None,
        typer.Option(help="Write the report as PATH.html and PATH.json; failover.<flow>.<time> by default."),
    ] = None,
    key: KeyFile = None,
    yes: Yes = False,
) -> None:
    """Fail over to the target: the flow is closed, so that nobody writes there any more, and groups are moved. Killed and run
    again, it does what is left. Without --yes it shows the plan. Exit status: 0 nothing is missing, 1 something is, 2 bad input.
    """
    from airmirror.runbooks.failover.outcome import outcome_of
    from airmirror.runbooks.failover.plan import failover_plan
    from airmirror.runbooks.failover.shown import shown_outcome, shown_plan
    from airmirror.runbooks.failover.steps import FailoverOrder, check_way, fail_over

    order, signs = FailoverOrder(way, reason, by, wait, inexact=inexact, anyway=anyway), signer_of(key)
    with given.opened(shows=not yes) as opened, telling(console) as tell:
        name = opened.flow.name
        if not yes:
            check_way(opened, order)
            found = shown_plan(failover_plan(opened))
        else:
            found = shown_outcome(outcome_of(opened, order, *fail_over(opened, order, tell)))
    if yes:
        end_outcome(found, report_base(write, "failover", name, found.made_ms), signs, given.as_json)
    else:
        end_dry_run(found, f"With --yes the flow {name} is failed over ({way}).", given.as_json)


failover_commands.command("rehearse")(rehearse)


@failover_commands.command("undo")
@partial(flow_command, has_json=False)
def undo(
    given: FlowOptions,
    reason: Annotated[str, typer.Option(help="Why; it is kept with the opening.")],
    by: By,
    yes: Yes = False,
) -> None:
    """Put groups back where they stood before a failover, and open the flow: as long as nobody has gone on over there."""
    from airmirror.runbooks.failover import undo as undoing

    with given.opened(shows=not yes) as opened, telling(console) as tell:
        name = opened.flow.name
        found = undoing.undo_plan(opened)
        if yes:
            found = undoing.undo(opened, reason=reason, by=by, tell=tell)
    show_put_back(name, found.groups, found.reasons, yes)
    state = "is open" if yes else "would be opened" if found.is_closed else "is open already"
    show(console, f"{name} {state}.", *([] if yes else ["Nothing was written: --yes does it."]))
    if found.reasons:
        raise typer.Exit(1)

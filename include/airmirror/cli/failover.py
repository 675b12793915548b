"""``airmirror failover``: what one would mean now, carried out, and undone."""

from __future__ import annotations

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
from airmirror.cli.plans import finding_lines, report_base, show_put_back, write_plan
from airmirror.cli.rehearse import rehearse
from airmirror.cli.steps import telling
from airmirror.cli.tables import BAD, DOUBTFUL, GOOD, Cell, line, print_json, show, table
from airmirror.failover.ways import Way

if TYPE_CHECKING:  # every command would load them at its start
    from airmirror.failover.plan import FailoverPlan
    from airmirror.failover.report import FailoverReport

MOST_SHOWN = 20  # groups that were left; the report has all

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
) -> None:
    """Show what a failover would mean now: what has crossed, where groups go on, what is missing. Also while the source is gone.

    Nothing is written but the ledger. Exit status: 0 nothing warns, 1 something does, 2 bad input.
    """
    from airmirror.failover.page import page
    from airmirror.failover.plan import failover_plan

    with given.opened(shows=True) as opened, console.status("looking at both clusters"):
        found = failover_plan(opened)
    if write is not None:
        write_plan(write, page(found), found.as_dict())
    if given.as_json:
        print_json(console, found.as_dict())
    else:
        _show(found)
    if not found.is_ready:
        raise typer.Exit(1)


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
    yes: Yes = False,
) -> None:
    """Fail over to the target: the flow is closed, so that nobody writes there any more, and groups are moved. Killed and run
    again, it does what is left. Without --yes it shows the plan. Exit status: 0 nothing is missing, 1 something is, 2 bad input.
    """
    from airmirror.failover.plan import failover_plan
    from airmirror.failover.report import report_of, write_report
    from airmirror.failover.steps import Order, check_way, fail_over

    order = Order(way, reason, by, wait, inexact, anyway)
    with given.opened(shows=not yes) as opened, telling(console) as tell:
        if not yes:
            check_way(opened, order)
            found = failover_plan(opened)
        else:
            made = report_of(opened, order, *fail_over(opened, order, tell))
            file = write_report(made, report_base(write, "failover", opened.flow.name, made.ended_ms))
        servers = ",".join(opened.flow.target.bootstrap_servers)
    if given.as_json:
        print_json(console, made.as_dict() if yes else found.as_dict() | {"done": False})
    elif yes:
        _show_done(made, file, servers)
    else:
        _show(found)
        show(console, f"Nothing was written. With --yes the flow {found.flow} is failed over ({way}).")
    if not (made.is_good if yes else found.is_ready):
        raise typer.Exit(1)


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
    from airmirror.failover import undo as undoing

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


def _show_done(made: FailoverReport, file: Path, servers: str) -> None:
    """Show what was done, what is left, and how applications go on."""
    for each in made.not_judged:
        show(console, line("not proven", f"{each.topic}-{each.partition} from {each.first} on: {each.reason}", BAD))
    for row in made.left[:MOST_SHOWN]:
        show(console, line("left", f"{row.group} in {row.topic}-{row.partition}: {row.reason}", DOUBTFUL))
    for point in made.plan.partitions:
        if point.missing is None or point.missing:
            known = (
                "nobody knows where the source ends" if point.source_end is None else f"its end was {point.source_end}"
            )
            show(console, line("did not cross", f"{point.name} from {point.verified_end} on; {known}", DOUBTFUL))
    names: list[list[Cell]] = [[topic, remote] for topic, remote in sorted(made.plan.names.items())]
    title = f"start your applications with bootstrap.servers = {servers} and"
    show(console, table(title, ("on the source", "on the target"), names, empty="nothing was replicated"))
    show(console, Text(made.headline, GOOD if made.is_good else DOUBTFUL), f"The report: {file}")


def _show(found: FailoverPlan) -> None:
    from airmirror.failover.page import headline, known_time

    partitions: list[list[Cell]] = [
        [
            point.topic,
            point.partition,
            point.remote_topic,
            point.verified_end,
            point.committed_end,
            point.source_end,
            point.missing,
            known_time(point.complete_ms) if point.verified_end else "nothing yet",
        ]
        for point in found.partitions
    ]
    groups: list[list[Cell]] = [
        [
            point.group,
            point.topic,
            point.partition,
            point.position,
            point.translation,
            point.again,
            point.reason or ("exact" if point.exact else "estimated"),
        ]
        for point in found.groups
    ]
    numbers = ("partition", "verified", "committed", "source's end", "not verified")
    columns = ("topic", "partition", "remote topic", *numbers[1:], "complete to")
    show(
        console, table(f"{found.flow}: partitions", columns, partitions, right=numbers, empty="nothing was replicated")
    )
    positions = ("partition", "position", "goes on at", "read again")
    if groups:
        show(console, "")
    show(
        console,
        table(f"{found.flow}: groups", ("group", "topic", *positions, ""), groups, right=positions, empty="none"),
    )
    show(console, "")
    show(console, *finding_lines(found.findings), Text(headline(found), GOOD if found.is_ready else DOUBTFUL))

"""``airmirror failover rehearse`` and ``migration rehearse``: with shadows, which prove that the real one would work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from airmirror.cli.flow_options import FlowOptions, flow_command
from airmirror.cli.options import (
    console,
)
from airmirror.cli.plans import report_base
from airmirror.cli.steps import telling
from airmirror.cli.tables import BAD, GOOD, Cell, line, print_json, show, table

if TYPE_CHECKING:  # every command would load them at its start
    from airmirror.migration.rehearsal_report import MoveReport
    from airmirror.rehearsal.report import RehearsalReport

MOST_SHOWN = 20  # problems; the report has all


@flow_command
def rehearse(
    given: FlowOptions,
    write: Annotated[
        Path | None,
        typer.Option(help="Write the report as PATH.html and PATH.json; rehearsal.<flow>.<time> by default."),
    ] = None,
) -> None:
    """Rehearse a failover while everything runs: groups are moved under shadow names, applications' records written and read in
    shadow topics, records compared with the source. Production is only read. Exit status: 0 it would work, 1 it would not.
    """
    from airmirror.rehearsal.rehearse import rehearse as carry_out
    from airmirror.rehearsal.report import RehearsalReport, write_report

    with given.opened(shows=True) as opened, telling(console) as tell:
        report = RehearsalReport.of(carry_out(opened, tell))
        file = write_report(report, report_base(write, "rehearsal", report.flow, report.made.ended_ms))
    _end(report, file, given.as_json, report.holds)


@flow_command
def rehearse_move(
    given: FlowOptions,
    move: Annotated[str, typer.Option("--move", help="The move group: <flow>.move.<name>.… in the configuration.")],
    write: Annotated[
        Path | None,
        typer.Option(help="Write the report as PATH.html and PATH.json; rehearsal.<flow>.<move>.<time> by default."),
    ] = None,
) -> None:
    """Rehearse a migration while everything runs: its steps on copies of the newest records, with shadows of the groups, every
    record compared with the source. Production is only read. Exit status: 0 it would work, 1 it would not.
    """
    from airmirror.migration.rehearsal import rehearse_move as carry_out
    from airmirror.migration.rehearsal_report import MoveReport, write_report

    with given.opened(shows=True) as opened, telling(console) as tell:
        report = MoveReport.of(carry_out(opened, move, tell))
        file = write_report(report, report_base(write, "rehearsal", f"{report.flow}.{move}", report.made.ended_ms))
    _end(report, file, given.as_json)


def _end(report: RehearsalReport | MoveReport, file: Path, as_json: bool, holds: str = "") -> None:
    """Show the report, and end with 1 where it would not work."""
    if as_json:
        print_json(console, report.as_dict())
    else:
        _show(report, file, holds)
    if not report.is_good:
        raise typer.Exit(1)


def _show(report: RehearsalReport | MoveReport, file: Path, holds: str) -> None:
    """Show how long each step took, what that time ``holds``, what would go wrong, and the whole in one sentence."""
    rows: list[list[Cell]] = [
        [each.name, f"{each.seconds:.1f}", "yes" if each.is_failover else ""] for each in report.made.steps
    ]
    columns = ("step", "seconds", f"of {report.of_what}")
    show(console, table(f"{report.flow}: rehearsal of {report.of_what}", columns, rows, right=("seconds",)))
    if holds:
        show(console, holds)
    for each in report.problems[:MOST_SHOWN]:
        show(console, line("stop", each, BAD))
    show(console, Text(report.headline, GOOD if report.is_good else BAD), f"The report: {file}")

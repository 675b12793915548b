"""``airmirror failover rehearse`` and ``migration rehearse``: what the real one relies on is proven by reading."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from airmirror.cli.failures import failures_reported
from airmirror.cli.options import (
    DEFAULT_CONFIG,
    DEFAULT_LEDGER,
    AsJson,
    Config,
    FlowName,
    LedgerUrl,
    Secrets,
    console,
    opened_flow,
)
from airmirror.cli.plans import report_base
from airmirror.cli.steps import telling
from airmirror.cli.tables import BAD, GOOD, Cell, line, print_json, show, table

if TYPE_CHECKING:  # every command would load them at its start
    from airmirror.migration.rehearsal_report import MoveReport
    from airmirror.rehearsal.report import RehearsalReport

MOST_SHOWN = 20  # problems; the report has all


@failures_reported
def rehearse(
    flow: FlowName = "",
    write: Annotated[
        Path | None,
        typer.Option(help="Write the report as PATH.html and PATH.json; rehearsal.<flow>.<time> by default."),
    ] = None,
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Rehearse a failover while everything runs: each group's next record is read on both sides, the newest records are
    compared, rights are asked for. Both clusters are only read. Exit status: 0 it would work, 1 it would not.
    """
    from airmirror.rehearsal.rehearse import rehearse as carry_out
    from airmirror.rehearsal.report import RehearsalReport, write_report

    with opened_flow(config, flow, ledger, secrets, shows=True) as opened, telling(console) as tell:
        report = RehearsalReport.of(carry_out(opened, tell))
        file = write_report(report, report_base(write, "rehearsal", report.flow, report.made.ended_ms))
    _end(report, file, as_json, report.holds)


@failures_reported
def rehearse_move(
    move: Annotated[str, typer.Option("--move", help="The move group: <flow>.move.<name>.… in the configuration.")],
    flow: FlowName = "",
    write: Annotated[
        Path | None,
        typer.Option(help="Write the report as PATH.html and PATH.json; rehearsal.<flow>.<move>.<time> by default."),
    ] = None,
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Rehearse a migration while everything runs: each group's next record is read on both sides, the newest records are
    compared, rights are asked for. Both clusters are only read. Exit status: 0 it would work, 1 it would not.
    """
    from airmirror.migration.rehearsal import rehearse_move as carry_out
    from airmirror.migration.rehearsal_report import MoveReport, write_report

    with opened_flow(config, flow, ledger, secrets, shows=True) as opened, telling(console) as tell:
        report = MoveReport.of(carry_out(opened, move, tell))
        file = write_report(report, report_base(write, "rehearsal", f"{report.flow}.{move}", report.made.ended_ms))
    _end(report, file, as_json)


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
    columns = ("step", "seconds", "of a failover") if holds else ("step", "seconds")
    rows: list[list[Cell]] = []
    for step in report.made.steps:
        cells = (step.name, f"{step.seconds:.1f}", "yes" if step.is_failover else "")
        rows.append([*cells[: len(columns)]])
    show(console, table(f"{report.flow}: rehearsal of {report.of_what}", columns, rows, right=("seconds",)))
    if holds:
        show(console, holds)
    for each in report.problems[:MOST_SHOWN]:
        show(console, line("stop", each, BAD))
    show(console, Text(report.headline, GOOD if report.is_good else BAD), f"The report: {file}")

"""``airmirror failover rehearse``: a failover with shadows, which proves that the real one would work, and touches nothing."""

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
from airmirror.cli.steps import telling
from airmirror.cli.tables import BAD, GOOD, Cell, line, print_json, show, table

if TYPE_CHECKING:  # every command would load them at its start
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
    """Rehearse a failover while everything runs: groups are moved under shadow names, applications' records written and read in
    shadow topics, records compared with the source. Production is only read. Exit status: 0 it would work, 1 it would not.
    """
    from airmirror.rehearsal.rehearse import rehearse as carry_out
    from airmirror.rehearsal.report import RehearsalReport, write_report

    with opened_flow(config, flow, ledger, secrets, shows=True) as opened, telling(console) as tell:
        report = RehearsalReport.of(carry_out(opened, tell))
        name = f"rehearsal.{opened.flow.name.replace('->', '.')}.{report.made.ended_ms // 1000}"
        file = write_report(report, write or Path(name))
    if as_json:
        print_json(console, report.as_dict())
    else:
        _show(report, file)
    if not report.is_good:
        raise typer.Exit(1)


def _show(report: RehearsalReport, file: Path) -> None:
    """Show how long each step took, what would go wrong, and the whole in one sentence."""
    rows: list[list[Cell]] = [
        [each.name, f"{each.seconds:.1f}", "yes" if each.is_failover else ""] for each in report.made.steps
    ]
    title = f"{report.flow}: rehearsal of a failover"
    show(console, table(title, ("step", "seconds", "of a failover"), rows, right=("seconds",)))
    for each in report.problems[:MOST_SHOWN]:
        show(console, line("stop", each, BAD))
    show(console, Text(report.headline, GOOD if report.is_good else BAD), f"The report: {file}")

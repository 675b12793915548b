"""``airmirror report``: a flow's evidence as one page and one JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from airmirror.cli.failures import NOT_VERIFIED, failures_reported
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
from airmirror.cli.tables import print_json, safe
from airmirror.cli.times import time_of
from airmirror.evidence.report_errors import EmptyTimeRange
from airmirror.evidence.report_files import write_report
from airmirror.evidence.reports import Report

report_commands = typer.Typer(help="A flow's evidence as one page and one JSON.", invoke_without_command=True)


@report_commands.callback()
@failures_reported
def report(
    context: typer.Context,
    flow: FlowName = "",
    from_time: Annotated[str, typer.Option("--from", help="Only what was committed from this time on: ISO 8601.")] = "",
    to_time: Annotated[str, typer.Option("--to", help="Only what was committed before this time: ISO 8601.")] = "",
    write: Annotated[
        Path | None,
        typer.Option(
            help="Where to: PATH.html and PATH.json, which must not be there yet; by default here, by flow and time."
        ),
    ] = None,
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Write what was copied, verified, held, decided and lost, computed from the segment topic, as one page and one JSON.

    Exit status: 0 all of it is proven, 1 not, 2 bad input.
    """
    if context.invoked_subcommand is not None:
        return
    from airmirror.flows.report import report_flow
    from airmirror.flows.report_rows import Span

    span = Span(time_of("--from", from_time), time_of("--to", to_time))
    if span.first_ms is not None and span.end_ms is not None and span.first_ms >= span.end_ms:
        raise EmptyTimeRange(from_time, to_time)
    with opened_flow(config, flow, ledger, secrets, shows=True) as opened, console.status("reading the segment topic"):
        made = report_flow(opened, span)
        name = "-".join((opened.flow.source.alias, opened.flow.target.alias))
    tell(made, write or Path(f"report-{name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"), as_json)
    if not made.is_good:
        raise typer.Exit(NOT_VERIFIED)


def tell(made: Report, base: Path, as_json: bool) -> None:
    """Write a report's files and say what they say. Raises ReportNotWritten."""
    content = made.as_dict()
    files = write_report(content, base)
    if as_json:
        print_json(console, content)
        return
    for line in (
        made.verdict,
        *(f"not known: {each}" for each in made.not_known),
        *(f"written: {file}" for file in files),
    ):
        console.print(safe(line), markup=False, highlight=False, soft_wrap=True)

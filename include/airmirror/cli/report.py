"""``airmirror report``: a flow's evidence as one page and one JSON, signed; ``airmirror report check`` checks them."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airmirror.cli.failures import NOT_VERIFIED, failures_reported
from airmirror.cli.flow_options import FlowOptions, flow_command, is_of_subcommand
from airmirror.cli.options import (
    DEFAULT_LEDGER,
    Expectations,
    LedgerUrl,
    Secrets,
    console,
    expectations_in,
    ledger_there,
    opened_flow,
    time_of,
)
from airmirror.cli.tables import print_all, print_json, safe
from airmirror.evidence.asking import EmptyTimeRange
from airmirror.report.errors import ReportNotWritten
from airmirror.report.files import write_evidence, write_new

if TYPE_CHECKING:
    from airmirror.report.signing import Signer

PASSWORD = "AIRMIRROR_REPORT_KEY_PASSWORD"

KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key",
        help="Sign with this private key, a PEM file: `openssl genpkey -algorithm ed25519 -out key.pem` makes one. If it has a "
        f"password, it is read from the environment's {PASSWORD}.",
    ),
]
After = Annotated[
    Path | None, typer.Option(help="The report before it, a .json file; by default the newest of the same directory.")
]

report_commands = typer.Typer(help="A flow's evidence as one page and one JSON.", invoke_without_command=True)


@report_commands.callback()
@flow_command
def report(
    given: FlowOptions,
    context: typer.Context,
    from_time: Annotated[str, typer.Option("--from", help="Only what was committed from this time on: ISO 8601.")] = "",
    to_time: Annotated[str, typer.Option("--to", help="Only what was committed before this time: ISO 8601.")] = "",
    write: Annotated[
        Path | None,
        typer.Option(
            help="Where to: PATH.html and PATH.json, which must not be there yet; by default here, by flow and time."
        ),
    ] = None,
    key: KeyFile = None,
    after: After = None,
    expectations: Expectations = None,
) -> None:
    """Write what was copied, verified, held, decided and lost, computed from the mapping topic, as one page and one JSON.

    Exit status: 0 all of it is proven, 1 not, 2 bad input.
    """
    if is_of_subcommand(context):
        return
    from airmirror.flows.gates import expectations_of
    from airmirror.flows.report import report_flow
    from airmirror.flows.report_rows import Span

    signs = signer_of(key)
    span = Span(time_of("--from", from_time), time_of("--to", to_time))
    if span.first_ms is not None and span.end_ms is not None and span.first_ms >= span.end_ms:
        raise EmptyTimeRange(from_time, to_time)
    with given.opened(shows=True) as opened, console.status("reading the mapping topic"):
        made = report_flow(opened, span, expectations_of(expectations_in(given.config, expectations)))
        name = "-".join((opened.flow.source.alias, opened.flow.target.alias))
    base = write or Path(f"report-{name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    files = write_evidence(made, base, signs, after)
    if given.as_json:
        print_json(console, made.as_dict())
    else:
        said = (*(f"not known: {each}" for each in made.not_known), *(f"written: {file}" for file in files))
        print_all(console, *map(safe, (made.headline, *said)))
    if not made.is_good:
        raise typer.Exit(NOT_VERIFIED)


@report_commands.command("check")
@failures_reported
def check_report(
    file: Annotated[Path, typer.Argument(help="The .json file of a report; its page and signature lie next to it.")],
    public: Annotated[
        Path | None,
        typer.Option("--public-key", help="Whose signature is asked for: `openssl pkey -in key.pem -pubout`."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="A mirror.properties file with the flow: compare the report's digests with the mapping topic too, and read "
            "some of its records again on both clusters."
        ),
    ] = None,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    secrets: Secrets = None,
) -> None:
    """Check a report's signatures, its page, and the chain of reports before it. Exit status: 0 sound, 1 not, 2 bad input."""
    lines, is_sound = checked(file, public)
    if is_sound and config is not None:
        more, is_sound = _spotted(file, config, ledger, secrets)
        lines = [*more, *lines] if is_sound else [*lines[:-1], *more]
    print_all(console, *map(safe, lines))
    if not is_sound:
        raise typer.Exit(NOT_VERIFIED)


@report_commands.command("fetch")
@failures_reported
def fetch(
    directory: Annotated[
        Path, typer.Argument(help="Where to: below it KIND/FLOW/NAME.html, .json and their signatures.")
    ],
    ledger: LedgerUrl = DEFAULT_LEDGER,
) -> None:
    """Write the pages and reports that Airflow's tasks keep in the ledger to files, to be checked and handed over.

    Files that are there stay as they are.
    """
    from airmirror.ledger.pages import all_files

    written = 0
    with ledger_there(ledger) as opened:
        for each, content in all_files(opened.engine):
            file = directory.joinpath(*map(_part, (each.kind, each.flow.replace("->", "."), each.name)))
            if file.exists() and file.stat().st_size:
                continue
            try:
                file.unlink(missing_ok=True)  # an empty one is of a fetch that was ended
                file.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ReportNotWritten(str(file), error.strerror or str(error)) from error
            write_new({file: content})
            written += 1
    print_all(console, safe(f"written to {directory}: {written:,} files that were not there"))


def _part(name: str) -> str:
    """A part of a path, whatever the ledger's writers have put there."""
    return re.sub(r"^\.|[^A-Za-z0-9_.+-]", "-", name)


def _spotted(file: Path, config: Path, ledger: str, secrets: Path | None) -> tuple[list[str], bool]:
    """The result of a look at the clusters, in words, and whether nothing is wrong. Raises a cluster's error."""
    from airmirror.flows.report_spot import spot_check
    from airmirror.report.files import read_report

    stored = read_report(file)
    if stored.content.get("kind") != "flow":
        return ["note: a comparison's report names no digests: `airmirror compare` compares again"], True
    flow = str(stored.content["asked"]["flow"])
    with opened_flow(config, flow, ledger, secrets, shows=True) as opened:
        found = spot_check(opened, stored.content, stored.sha256)
    lines = [*(f"wrong: {each}" for each in found.wrong), *(f"note: {each}" for each in found.notes)]
    said = f"on the clusters now: the digests of {found.partitions} partitions agree"
    return [*lines, f"{said}, and {found.records:,} records, chosen by chance, are equal"], not found.wrong


def checked(file: Path, public: Path | None) -> tuple[list[str], bool]:
    """The result of a check in words, and whether all is sound. Raises NoReport, BadKey."""
    from airmirror.report.check import check
    from airmirror.report.signing import public_key

    found = check(file, public_key(public) if public else "")
    lines = [*(f"wrong: {each}" for each in found.wrong), *(f"note: {each}" for each in found.notes)]
    if not found.wrong:
        lines.append(" ".join(found.said.split()))
        lines.append(f"sound: {file}, and {len(found.chain) - 1} reports before it")
    return lines, not found.wrong


def signer_of(key: Path | None) -> Signer | None:
    """Who signs. Raises BadKey."""
    if key is None:
        return None
    from airmirror.report.signing import signer

    return signer(key, os.environ.get(PASSWORD, ""))

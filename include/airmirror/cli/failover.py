"""``airmirror failover plan``: what a failover would mean now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

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
from airmirror.cli.tables import BAD, DOUBTFUL, GOOD, Cell, line, print_json, show, table
from airmirror.failover.plan import FailoverPlan

STYLES = {"ok": GOOD, "warn": DOUBTFUL, "stop": BAD}

failover_commands = typer.Typer(no_args_is_help=True, help="Fail over to the target of a flow.")


@failover_commands.callback()
def failover() -> None:
    """Fail over to the target of a flow."""


@failover_commands.command("plan")
@failures_reported
def plan(
    flow: FlowName = "",
    write: Annotated[
        Path | None, typer.Option(help="Write the whole plan as PATH.html and PATH.json, over what is there.")
    ] = None,
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Show what a failover would mean now: what has crossed, where groups go on, what is missing. Also while the source is gone.

    Nothing is written but the ledger. Exit status: 0 nothing warns, 1 something does, 2 bad input.
    """
    from airmirror.failover.page import page
    from airmirror.failover.plan import failover_plan

    with opened_flow(config, flow, ledger, secrets, shows=True) as opened, console.status("looking at both clusters"):
        found = failover_plan(opened)
    if write is not None:
        for ending, text in ((".html", page(found)), (".json", json.dumps(found.as_dict(), indent=2))):
            try:
                write.with_name(write.name + ending).write_text(text)
            except OSError as error:
                raise typer.BadParameter(f"{write}{ending}: {error.strerror}", param_hint="--write") from error
    if as_json:
        print_json(console, found.as_dict())
    else:
        _show(found)
    if not found.is_ready:
        raise typer.Exit(1)


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
            known_time(point.complete_ms),
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
    for each in found.findings:
        text = f"{each.what}: {each.evidence}" + (f"; {each.way_out}" if each.way_out else "")
        show(console, line(each.level, text, STYLES[each.level]))
    show(console, Text(headline(found), GOOD if found.is_ready else DOUBTFUL))

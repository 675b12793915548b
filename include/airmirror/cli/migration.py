"""``airmirror migration plan``: what a migration of a flow's topics would meet."""

from __future__ import annotations

import json
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
from airmirror.cli.plans import finding_lines
from airmirror.cli.tables import DOUBTFUL, GOOD, Cell, print_json, show, table
from airmirror.errors import named

if TYPE_CHECKING:  # every command would load it at its start
    from airmirror.migration.plan import MigrationPlan

migration_commands = typer.Typer(no_args_is_help=True, help="Move a cluster's topics and clients to another one.")


@migration_commands.callback()
def migration() -> None:
    """Move a cluster's topics and clients to another one."""


@migration_commands.command("plan")
@failures_reported
def plan(
    flow: FlowName = "",
    takes: Annotated[
        float, typer.Option(min=0.0, max=3650.0, help="Days that the migration takes, with the time to undo it.")
    ] = 7.0,
    write: Annotated[
        Path | None,
        typer.Option(help="Write the whole plan to PATH.html or PATH.json; to both where PATH ends otherwise."),
    ] = None,
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Take inventory of both clusters, propose what must move together, and say of every rule whether it is met.

    Nothing is written but the ledger. Exit status: 0 nothing warns, 1 something does, 2 bad input.
    """
    from airmirror.migration.plan import DAY_MS, migration_plan

    if write is not None and not write.absolute().parent.is_dir():
        raise typer.BadParameter(f"{write}: there is no such directory", param_hint="--write")
    with opened_flow(config, flow, ledger, secrets, shows=True) as opened, console.status("looking") as status:
        found = migration_plan(opened, round(takes * DAY_MS), lambda phase: status.update(phase))
    if write is not None:
        _write(found, write)
    if as_json:
        print_json(console, found.as_dict())
    else:
        _show(found)
    if not found.is_ready:
        raise typer.Exit(1)


def _write(found: MigrationPlan, path: Path) -> None:
    from airmirror.migration.page import page

    texts = {".html": lambda: page(found), ".json": lambda: json.dumps(found.as_dict(), indent=2)}
    files = {path.suffix: path} if path.suffix in texts else {end: path.with_name(path.name + end) for end in texts}
    for ending, file in files.items():
        try:
            file.write_text(texts[ending](), "utf-8")
        except OSError as error:
            raise typer.BadParameter(f"{file}: {error.strerror}", param_hint="--write") from error


def _show(found: MigrationPlan) -> None:
    from airmirror.migration.page import headline

    moves: list[list[Cell]] = [
        [
            each.name,
            "configured" if each.configured else "proposed",
            named(each.topics),
            named(each.groups),
            named(each.transactional_ids),
        ]
        for each in found.moves
    ]
    columns = ("name", "", "topics", "groups", "transactional ids")
    show(console, table(f"{found.flow}: move groups", columns, moves, empty="nothing moves"))
    show(console, "")
    show(console, *finding_lines(found.rules), Text(headline(found), GOOD if found.is_ready else DOUBTFUL))

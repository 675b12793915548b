"""The commands of ``airmirror``: which there are, and their places in its help."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

import typer

from airmirror import __version__
from airmirror.cli.compare import compare
from airmirror.cli.config import config
from airmirror.cli.flow import flow_commands
from airmirror.cli.groups import group_commands
from airmirror.cli.heartbeat import heartbeat
from airmirror.cli.hold import hold_commands
from airmirror.cli.ledger import ledger_commands
from airmirror.cli.options import console
from airmirror.cli.plan import plan
from airmirror.cli.report import report_commands
from airmirror.cli.reset import reset
from airmirror.cli.run_window import run_window
from airmirror.cli.runbooks import commands_of
from airmirror.cli.status import status
from airmirror.cli.topics import topics
from airmirror.cli.translate import translate
from airmirror.cli.verify import verify
from airmirror.runbooks.failback.runbook import FAILBACK
from airmirror.runbooks.failover.runbook import FAILOVER
from airmirror.runbooks.migration.runbook import MIGRATION
from airmirror.runbooks.takeover.runbook import HANDBACK, TAKEOVER

LOOK, COPY, PROVE = "Look", "Copy", "Prove"  # the parts of --help
DECIDE, MOVE, TRY = "Decide", "Move", "Try it"

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Kafka topics, mirrored in windows that are proven.",
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.command("config", rich_help_panel=LOOK)(config)
app.command("status", rich_help_panel=LOOK)(status)
app.command("plan", rich_help_panel=LOOK)(plan)
app.command("run-window", rich_help_panel=COPY)(run_window)
app.command("verify", rich_help_panel=PROVE)(verify)
app.command("topics", rich_help_panel=LOOK)(topics)
app.command("compare", rich_help_panel=PROVE)(compare)
app.add_typer(report_commands, name="report", rich_help_panel=PROVE)
app.add_typer(hold_commands, name="hold", rich_help_panel=DECIDE)
app.command("reset", rich_help_panel=DECIDE)(reset)
app.add_typer(commands_of(TAKEOVER), name="takeover", rich_help_panel=MOVE)
app.add_typer(commands_of(HANDBACK), name="handback", rich_help_panel=MOVE)
app.add_typer(flow_commands, name="flow", rich_help_panel=DECIDE)
app.add_typer(commands_of(FAILOVER), name="failover", rich_help_panel=MOVE)
app.add_typer(commands_of(FAILBACK), name="failback", rich_help_panel=MOVE)
app.add_typer(commands_of(MIGRATION), name="migration", rich_help_panel=MOVE)
app.add_typer(group_commands, name="groups", rich_help_panel=LOOK)
app.command("translate", rich_help_panel=LOOK)(translate)
app.command("heartbeat", rich_help_panel=COPY)(heartbeat)
app.add_typer(ledger_commands, name="ledger", rich_help_panel=COPY)


def _tell_version(wanted: bool) -> None:
    if wanted:
        console.print(f"airmirror {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def airmirror(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    pass


if find_spec("airmirror_local") is not None:
    from airmirror_local.demo.commands import add_commands

    add_commands(app, TRY)

if __name__ == "__main__":
    app()

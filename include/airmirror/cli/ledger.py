"""``airmirror ledger rebuild``: the SQL mirror of a flow, read again from Kafka."""

from __future__ import annotations

from functools import partial

import typer

from airmirror.cli.flow_options import FlowOptions, flow_command
from airmirror.cli.options import console

ledger_commands = typer.Typer(no_args_is_help=True, help="The SQL mirror of a flow's internal topics.")


@ledger_commands.command("rebuild")
@partial(flow_command, has_json=False)
def rebuild(given: FlowOptions) -> None:
    """Rebuild the flow's part of the ledger from Kafka. A freeze that Kafka has lost is forgotten."""
    from airmirror.flows.prepare import read_again

    with given.opened() as opened, console.status("reading the internal topics"):
        counts = read_again(opened)
    console.print(f"ledger of {opened.flow.name}: " + ", ".join(f"{count} {name}" for name, count in counts.items()))

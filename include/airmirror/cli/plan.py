"""``airmirror plan``: what the next window would do."""

from __future__ import annotations

import typer

from airmirror.cli import plain, show
from airmirror.cli.flow_options import FlowOptions, flow_command
from airmirror.cli.options import console
from airmirror.cli.tables import print_all, print_json


@flow_command
def plan(given: FlowOptions) -> None:
    """Show what the next window would do; nothing is written. Exit status 1: something needs a person."""
    from airmirror.flows.holds import sorted_holds
    from airmirror.flows.prepare import dry_run
    from airmirror.flows.status import needs_somebody, still_failing

    with given.opened(shows=True) as opened:
        topics, planned = dry_run(opened)
        held = sorted_holds(opened.ledger)
        failing = still_failing(opened.ledger)
    if given.as_json:
        print_json(console, plain.plan(topics, planned, failing))
    else:
        print_all(console, *show.plan(topics, planned, held, failing))
    if needs_somebody(topics.refused, planned, held, failing):
        raise typer.Exit(1)

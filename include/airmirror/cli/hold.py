"""``airmirror hold add``, ``hold release`` and ``hold list``: partitions that windows leave out until an operator decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from airmirror.cli import plain, show
from airmirror.cli.flow_options import FlowOptions, flow_command
from airmirror.cli.options import By, Reason, Yes, console
from airmirror.cli.tables import print_all, print_json
from airmirror.wire.mappings import Decision

hold_commands = typer.Typer(no_args_is_help=True, help="Partitions that windows leave out until an operator decides.")

Topic = Annotated[str, typer.Argument(help="A topic of the source.")]
Partitions = Annotated[list[int] | None, typer.Option("--partition", help="A partition; again for more. Default: all.")]


@hold_commands.command("add")
@flow_command
def hold_add(
    given: FlowOptions, topic: Topic, reason: Reason, by: By, partition: Partitions = None, yes: Yes = False
) -> None:
    """Hold partitions from the next window on; a window that follows the log stops copying them at once. A dry run
    unless --yes.
    """
    from airmirror.flows.holds import add_holds

    with given.opened(shows=not yes) as opened:
        found = add_holds(opened, topic, partition or (), reason=reason, by=by, write=yes)
    _show(opened.flow.name, found, yes, given.as_json)


@hold_commands.command("release")
@flow_command
def hold_release(
    given: FlowOptions, topic: Topic, reason: Reason, by: By, partition: Partitions = None, yes: Yes = False
) -> None:
    """Let windows take held partitions again. The gate judges its own holds again, and holds them again if they fail. A dry run
    unless --yes.
    """
    from airmirror.flows.holds import release_holds

    with given.opened(shows=not yes) as opened:
        found = release_holds(opened, topic, partition or (), reason=reason, by=by, write=yes)
    _show(opened.flow.name, found, yes, given.as_json)


def _show(flow: str, found: Sequence[Decision], done: bool, as_json: bool) -> None:
    if as_json:
        print_json(console, {"flow": flow, "done": done, "decisions": plain.records(found)})
    else:
        print_all(console, show.decisions(found), *([] if done else ["Nothing was written: --yes does it."]))


@hold_commands.command("list")
@flow_command
def hold_list(
    given: FlowOptions,
    history: Annotated[bool, typer.Option("--history", help="All decisions, the oldest first.")] = False,
) -> None:
    """Show holds: by whom, since when and why; and partitions that fail in every window, but are not held."""
    from airmirror.flows.holds import list_decisions, list_holds
    from airmirror.flows.status import still_failing

    with given.opened(shows=True) as opened:
        decisions, holds = (list_decisions(opened), []) if history else ([], list_holds(opened))
        failing = [] if history else still_failing(opened.ledger)
    if given.as_json:
        print_json(console, plain.records(decisions or holds))
    else:
        print_all(console, show.decisions(decisions) if history else show.holds(holds), *show.failing(failing))

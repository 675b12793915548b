"""``airmirror flow freeze`` and ``flow unfreeze``: no window writes to a flow's remote topics any more, and again."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from airmirror.cli.flow_options import FlowOptions, flow_command
from airmirror.cli.options import By, Reason, Yes, console, telling

flow_commands = typer.Typer(no_args_is_help=True, help="Freeze a flow, so that no window writes for it; unfreeze it.")

Topics = Annotated[list[str] | None, typer.Option("--topic", help="A source topic; again for more. Default: the flow.")]


@flow_commands.command("freeze")
@partial(flow_command, has_json=False)
def flow_freeze(given: FlowOptions, reason: Reason, by: By, topic: Topics = None, yes: Yes = False) -> None:
    """Freeze a flow, or topics of it, by a record in its mapping topic: a window that runs ends now, and none of any
    configuration writes there again before it is unfrozen. Only the target is asked.
    """
    from airmirror.flows.freezing import freeze, to_freeze

    with given.opened(shows=not yes) as opened, telling(console) as tell:
        if yes:
            found = [each.topic for each in freeze(opened, topic or (), reason=reason, by=by, tell=tell)]
        else:
            found = to_freeze(opened, topic or ())
    _show(opened.flow.name, found, "frozen", yes)


@flow_commands.command("unfreeze")
@partial(flow_command, has_json=False)
def flow_unfreeze(given: FlowOptions, reason: Reason, by: By, topic: Topics = None, yes: Yes = False) -> None:
    """Unfreeze what was frozen: the next window resumes where the last one ended. Records that others have written to a remote
    topic since are not overwritten; its partitions are in error then.
    """
    from airmirror.flows.freezing import to_unfreeze, unfreeze

    with given.opened(shows=not yes) as opened, telling(console) as tell:
        if yes:
            found = [each.topic for each in unfreeze(opened, topic or (), reason=reason, by=by, tell=tell)]
        else:
            found = to_unfreeze(opened, topic or ())
    _show(opened.flow.name, found, "unfrozen", yes)


def _show(flow: str, topics: list[str], state: str, yes: bool) -> None:
    for topic in topics:
        what = f"topic {topic} of flow {flow}" if topic else f"flow {flow}"
        console.print(f"{what} {'is' if yes else 'would be'} {state}", highlight=False, markup=False)
    if not topics:
        console.print(f"flow {flow}: it is {state} already", highlight=False, markup=False)
    elif not yes:
        console.print("Nothing was written: --yes does it.", highlight=False)

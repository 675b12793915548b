"""``airmirror topics``: what differs between a flow's topics and their remote topics, and what will be done about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from airmirror.cli.flow_options import FlowOptions, flow_command
from airmirror.cli.options import console
from airmirror.cli.tables import DOUBTFUL, GOOD, Cell, line, print_all, print_json, safe, table
from airmirror.errors import counted
from airmirror.flows.prepare import plan_topics
from airmirror.topics.drift import Drift, drifts


@flow_command
def topics(
    given: FlowOptions,
    plan_only: Annotated[bool, typer.Option("--plan", help="Only what the next window will do.")] = False,
) -> None:
    """Show what differs between topics and their remote topics, and why it will or will not be changed."""
    with given.opened(shows=True) as opened:
        planned = plan_topics(opened)
    found = drifts(planned)
    shown = [drift for drift in found if drift.will_change] if plan_only else found
    if given.as_json:
        notes = {"acls_not_synced": planned.acls_not_synced or None, "warnings": list(planned.warnings)}
        rows = [asdict(drift) for drift in shown]
        print_json(console, {"flow": opened.flow.name, "topics": len(planned.topics)} | notes | {"drift": rows})
        return
    title = f"{opened.flow.name}: what the next window does" if plan_only else f"{opened.flow.name}: drift"
    empty = f"{'nothing to do' if plan_only else 'nothing differs'}, {counted(len(planned.topics), 'topic')}"
    print_all(console, _table(title, shown, empty))
    if planned.acls_not_synced:
        print_all(console, f"ACLs are not copied: {planned.acls_not_synced}")
    print_all(console, *(line("warning", warning, DOUBTFUL) for warning in planned.warnings))


def _table(title: str, drifts: Sequence[Drift], empty: str = "") -> RenderableType:
    columns = ("topic", "what", "source", "target", "will be", "why")
    rows: list[list[Cell]] = []
    for drift in drifts:
        outcome = Text(safe(drift.outcome), GOOD) if drift.will_change else drift.outcome
        rows.append([drift.topic, drift.what, drift.source or "", drift.target or "", outcome, drift.reason])
    return table(title, columns, rows, empty=empty)

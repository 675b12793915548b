"""``airmirror topics``: what differs between a flow's topics and their remote topics, and what will be done about it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from airmirror.cli.show import MOST_ROWS, print_json
from airmirror.flows.prepare import Opened, plan_topics
from airmirror.topics.drift import Drift, drifts


def show_topics(console: Console, opened: Opened, plan_only: bool, as_json: bool) -> None:
    """Print the drift of every topic, or with ``plan_only`` only what the next window will do. Nothing is written."""
    planned = plan_topics(opened)
    found = drifts(planned)
    shown = [drift for drift in found if drift.will_change] if plan_only else found
    if as_json:
        notes = {"acls_not_synced": planned.acls_not_synced or None, "warnings": list(planned.warnings)}
        rows = [drift.as_dict() for drift in shown]
        print_json(console, {"flow": opened.flow.name, "topics": len(planned.topics)} | notes | {"drift": rows})
        return
    title = f"{opened.flow.name}: what the next window does" if plan_only else f"{opened.flow.name}: drift"
    if not shown:
        what = "nothing to do" if plan_only else "nothing differs"
        console.print(f"{title}: {what}, {len(planned.topics)} topics")
    else:
        console.print(_table(title, shown))
    if planned.acls_not_synced:
        console.print(f"ACLs are not copied: {planned.acls_not_synced}", highlight=False)
    for warning in planned.warnings:
        console.print(f"[yellow]warning[/] {warning}", highlight=False)


def _table(title: str, drifts: Sequence[Drift]) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("topic", "what", "source", "target", "will be", "why"):
        table.add_column(column, overflow="fold")
    for drift in drifts[:MOST_ROWS]:
        outcome = f"[green]{drift.outcome}[/]" if drift.will_change else drift.outcome
        table.add_row(drift.topic, drift.what, drift.source or "", drift.target or "", outcome, drift.reason)
    if len(drifts) > MOST_ROWS:
        table.caption = f"{len(drifts) - MOST_ROWS} more rows: use --json"
    return table

"""``airmirror groups``, ``groups apply`` and ``translate``: consumer groups on both sides of a flow."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from airmirror.cli.show import MOST_ROWS, print_json
from airmirror.flows.positions import GroupRow, NoSuchGroup, list_positions, translate_at
from airmirror.flows.prepare import Opened, caught_up
from airmirror.ledger import GroupOffset
from airmirror.offsets.groups import sync_group_offsets
from airmirror.offsets.translation import Translated

READ_COMMITTED = "Read the target with isolation.level=read_committed: others see aborted attempts, and records twice."


def show_groups(console: Console, opened: Opened, only: Sequence[str], as_json: bool) -> None:
    """Print where groups stand on both clusters."""
    rows = list_positions(opened, only)
    if as_json:
        print_json(console, [row.as_dict() for row in rows])
        return
    columns = ("position", "lag", "lag (s)", "translated", "on target", "lag there", "lag there (s)")
    table = _table(f"{opened.flow.name}: groups", ("group", "topic", "partition", *columns, ""), columns)
    for row in rows[:MOST_ROWS]:
        numbers = (
            row.position, row.lag, row.lag_seconds, row.translation, row.on_target, row.target_lag,
            row.target_lag_seconds,
        )  # fmt: skip
        table.add_row(row.group, row.topic, str(row.partition), *map(_number, numbers), _how(row))
    if len(rows) > MOST_ROWS:
        table.caption = f"{len(rows) - MOST_ROWS} more rows: use --json"
    console.print(table)
    console.print(READ_COMMITTED, highlight=False)


def show_translation(
    console: Console, opened: Opened, group: str, at: str | None, topic: str | None, as_json: bool
) -> None:
    """Print where a group's positions, or an offset or time in its partitions, are on the target."""
    found = translate_at(opened, group, at, topic)
    rows: list[dict[str, Any]] = [
        {
            "topic": item.topic, "partition": item.partition, "position": item.committed.offset,
            "remote_topic": item.remote_topic, "translation": None, "exact": None, "again": 0, "reason": str(item.found),
        } | (
            {"translation": item.found.translation, "exact": item.found.exact, "again": item.found.again, "reason": ""}
            if isinstance(item.found, Translated) else {}
        )
        for item in found
    ]  # fmt: skip
    if as_json:
        print_json(console, rows)
        return
    columns = ("topic", "partition", "position", "remote topic", "translation", "")
    table = _table(f"{opened.flow.name}: {group}", columns, ("partition", "position", "translation"))
    for row in rows:
        how = row["reason"] or ("exact" if row["exact"] else "estimated")
        again = f", {row['again']} records will be read again" if row["again"] else ""
        cells = (row["topic"], row["partition"], row["position"], row["remote_topic"], _number(row["translation"]))
        table.add_row(*map(str, cells), f"{how}{again}")
    console.print(table)


def apply_groups(console: Console, opened: Opened, group: str, yes: bool, as_json: bool) -> None:
    """Move a group on the target, or tell what would be done; print how to undo it."""
    opened = caught_up(opened)
    rows = sync_group_offsets(opened.flow, opened.ledger, [group], dry_run=not yes)
    if not rows:
        raise NoSuchGroup(opened.flow.name, opened.flow.source.alias, group)
    undo = undo_commands(opened, rows)
    if as_json:
        print_json(console, {"applied": yes, "rows": [asdict(row) for row in rows], "undo": undo})
        return
    columns = ("partition", "position", "on target before", "on target" if yes else "would be")
    table = _table(f"{opened.flow.name}: {group}", ("topic", *columns, ""), columns)
    for row in rows:
        kept = "" if not row.reason else f"not moved: {row.reason}"
        again = f"{row.again} records will be read again" if row.again and not row.reason else ""
        to = _number(row.downstream if not row.reason else row.on_target)
        table.add_row(row.topic, str(row.partition), str(row.position), _number(row.on_target), to, kept or again)
    console.print(table)
    console.print(READ_COMMITTED, highlight=False)
    if not yes:
        console.print("Nothing was written: --yes applies.")
    elif undo:
        console.print("To undo, while the group has no members:")
        for command in undo:
            console.print(command, highlight=False, soft_wrap=True)


def undo_commands(opened: Opened, rows: Sequence[GroupOffset]) -> list[str]:
    """Kafka's own commands that put the group back where it was on the target."""
    tool = f"kafka-consumer-groups.sh --bootstrap-server {','.join(opened.flow.target.bootstrap_servers)}"
    commands = []
    for row in rows:
        if row.reason or row.on_target == row.downstream:
            continue
        where = f"--group {shlex.quote(row.group)} --topic {shlex.quote(f'{row.remote_topic}:{row.partition}')}"
        if row.on_target is None:
            commands.append(f"{tool} --delete-offsets {where}")
        else:
            commands.append(f"{tool} --reset-offsets {where} --to-offset {row.on_target} --execute")
    return commands


def _how(row: GroupRow) -> str:
    if row.reason:
        return row.reason
    again = f", {row.again} again" if row.again else ""
    return f"{'exact' if row.exact else 'estimated'}{again}"


def _number(value: float | int | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"


def _table(title: str, columns: Sequence[str], right: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column in right else "left")
    return table

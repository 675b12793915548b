"""``airmirror groups``, ``groups apply`` and ``translate``: consumer groups on both sides of a flow."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from airmirror.cli.tables import Cell, print_json, show, table
from airmirror.errors import command
from airmirror.flows.positions import MOST_AGES, GroupRow, NoSuchGroup, list_positions, translate_at
from airmirror.flows.positions_file import translate_file
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
    numbers = ("position", "lag", "lag (s)", "translated", "on target", "lag there", "lag there (s)")
    cells = (
        (
            row.group,
            row.topic,
            row.partition,
            row.position,
            row.lag,
            row.lag_seconds,
            row.translation,
            row.on_target,
            row.target_lag,
            row.target_lag_seconds,
            _how(row),
        )
        for row in rows
    )
    columns = ("group", "topic", "partition", *numbers, "")
    empty = "no group has committed offsets of what the flow replicates"
    show(console, table(f"{opened.flow.name}: groups", columns, cells, right=("partition", *numbers), empty=empty))
    if len(rows) > MOST_AGES:
        show(console, f"Lags in seconds are looked up for at most {MOST_AGES} rows: name a group with --group.")
    if rows:
        show(console, READ_COMMITTED)


def show_translation(
    console: Console, opened: Opened, group: str, at: str | None, topic: str | None, as_json: bool
) -> None:
    """Print where a group's positions, or an offset or time in its partitions, are on the target."""
    found = translate_at(opened, group, at, topic)
    rows: list[dict[str, Any]] = [
        {
            "topic": item.topic,
            "partition": item.partition,
            "position": item.committed.offset,
            "remote_topic": item.remote_topic,
            "translation": None,
            "exact": None,
            "again": 0,
            "reason": str(item.found),
        }
        | (
            {"translation": item.found.translation, "exact": item.found.exact, "again": item.found.again, "reason": ""}
            if isinstance(item.found, Translated)
            else {}
        )
        for item in found
    ]
    if as_json:
        print_json(console, rows)
        return
    columns = ("topic", "partition", "position", "remote topic", "translation", "")
    cells = []
    for row in rows:
        how = row["reason"] or ("exact" if row["exact"] else "estimated")
        again = f", {row['again']} records will be read again" if row["again"] else ""
        cells.append([*(row[name.replace(" ", "_")] for name in columns if name), f"{how}{again}"])
    show(console, table(f"{opened.flow.name}: {group}", columns, cells, right=("partition", "position", "translation")))


def show_file_translation(console: Console, opened: Opened, path: Path, to: Path, topic: str, as_json: bool) -> None:
    """Translate a file of positions, and print each of them."""
    found = translate_file(opened, path, to, topic)
    rows = found.rows()
    if as_json:
        print_json(console, {"format": found.format, "kept": found.kept, "written": str(to), "positions": rows})
        return
    columns = ("", "topic", "partition", "position", "remote topic", "translation", "")
    cells: list[list[Cell]] = [
        [
            row["place"],
            row["topic"],
            row["partition"],
            row["position"],
            row["remote_topic"],
            row["translation"],
            "exact" if row["exact"] else "estimated: records may be read again",
        ]
        for row in rows
    ]
    title, empty = f"{opened.flow.name}: {found.format}", "no position in Kafka"
    show(console, table(title, columns, cells, right=("partition", "position", "translation"), empty=empty))
    for each in found.kept:
        show(console, f"As it was: {each}.")
    show(console, f"Written to {to}. {READ_COMMITTED}")


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
    cells: list[list[Cell]] = []
    for row in rows:
        kept = "" if not row.reason else f"not moved: {row.reason}"
        again = f"{row.again} records will be read again" if row.again and not row.reason else ""
        to = row.downstream if not row.reason else row.on_target
        cells.append([row.topic, row.partition, row.position, row.on_target, to, kept or again])
    show(console, table(f"{opened.flow.name}: {group}", ("topic", *columns, ""), cells, right=columns), READ_COMMITTED)
    if not yes:
        apply = command("groups", "apply", "--group", group, "--yes", flow=opened.flow.name)
        show(console, f"Nothing was written. Carry it out: {apply}")
    elif undo:
        show(console, "To undo, while the group has no members:", *undo)


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

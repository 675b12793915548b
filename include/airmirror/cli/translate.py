"""``airmirror translate``: a group's positions, an offset, a time, or the positions in a file, on the target."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from airmirror.cli.flow_options import FlowOptions, flow_command
from airmirror.cli.groups import READ_COMMITTED
from airmirror.cli.options import console
from airmirror.cli.tables import Cell, print_all, print_json, table
from airmirror.flows.prepare import Opened
from airmirror.rows import row_of


@flow_command
def translate(
    given: FlowOptions,
    group: Annotated[str, typer.Option("--group", help="The consumer group.")] = "",
    at: Annotated[str | None, typer.Option(help="An offset or a time, instead of the group's positions.")] = None,
    topic: Annotated[
        str | None,
        typer.Option(help="Only this topic of the source; with --from the topic that Flink's offsets are of."),
    ] = None,
    positions: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Instead of a group's: the positions in this file, or Spark checkpoint directory (docs/migration.md).",
        ),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="Where the translated copy is written; never over a file.")
    ] = None,
) -> None:
    """Translate a group's positions to the target, or an offset or a time in its partitions; or the positions in a file."""
    if (positions is None) != (to is None) or bool(group) == bool(positions) or (positions and at is not None):
        raise typer.BadParameter("give either --group, or --from and --to")
    with given.opened(shows=True) as opened:
        if positions and to:
            _show_file(opened, positions, to, topic or "", given.as_json)
        else:
            _show_group(opened, group, at, topic, given.as_json)


def _show_group(opened: Opened, group: str, at: str | None, topic: str | None, as_json: bool) -> None:
    """Print where a group's positions, or an offset or time in its partitions, are on the target."""
    from airmirror.flows.positions import translate_at
    from airmirror.offsets.translation import Translated

    found = translate_at(opened, group, at, topic)
    rows: list[dict[str, Any]] = []
    for item in found:
        row = row_of(item, "topic partition position=committed.offset remote_topic")
        if isinstance(item.found, Translated):
            row |= row_of(item.found, "translation exact again") | {"reason": ""}
        else:
            row |= {"translation": None, "exact": None, "again": 0, "reason": str(item.found)}
        rows.append(row)
    if as_json:
        print_json(console, rows)
        return
    columns = ("topic", ">partition", ">position", "remote topic", ">translation", "")
    cells = []
    for row in rows:
        how = row["reason"] or ("exact" if row["exact"] else "estimated")
        again = f", {row['again']} records will be read again" if row["again"] else ""
        cells.append([*list(row.values())[:5], f"{how}{again}"])
    print_all(console, table(f"{opened.flow.name}: {group}", columns, cells))


def _show_file(opened: Opened, path: Path, to: Path, topic: str, as_json: bool) -> None:
    """Translate a file of positions, and print each of them."""
    from airmirror.flows.positions_file import translate_file

    found = translate_file(opened, path, to, topic)
    rows = found.rows()
    if as_json:
        print_json(console, {"format": found.format, "kept": found.kept, "written": str(to), "positions": rows})
        return
    columns = ("", "topic", ">partition", ">position", "remote topic", ">translation", "")
    how = {True: "exact", False: "estimated: records may be read again"}
    cells: list[list[Cell]] = [[*list(row.values())[:-1], how[row["exact"]]] for row in rows]
    title, empty = f"{opened.flow.name}: {found.format}", "no position in Kafka"
    print_all(console, table(title, columns, cells, empty=empty))
    for each in found.kept:
        print_all(console, f"As it was: {each}.")
    print_all(console, f"Written to {to}. {READ_COMMITTED}")

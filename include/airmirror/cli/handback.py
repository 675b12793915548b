"""``airmirror handback``: MirrorMaker 2 continues at the very next record; ``--check``: it has."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from airmirror.cli.flow_options import FlowOptions, flow_command
from airmirror.cli.options import (
    console,
)
from airmirror.cli.steps import telling
from airmirror.cli.tables import BAD, DOUBTFUL, GOOD, Cell, line, print_json, show, table
from airmirror.errors import command, counted
from airmirror.flows.post_window import PostWindowTask
from airmirror.naming import progress_topic

if TYPE_CHECKING:
    from airmirror.flows.prepare import Opened
    from airmirror.runbooks.takeover.handback_check import CopyDifference, FirstRecords, HandbackCheck


@flow_command
def handback(
    given: FlowOptions,
    topic: Annotated[
        str, typer.Option(help="Write progress into this topic of Connect's workers, while the connector is stopped.")
    ] = "",
    connector: Annotated[
        str, typer.Option(help="The connector's name there; by default takeover.connector.name.")
    ] = "",
    write: Annotated[
        Path | None, typer.Option(help="Write the body for PATCH /connectors/<name>/offsets of Connect's REST API.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="With --topic: write; without it nothing is.")] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Afterwards: did MirrorMaker 2 resume at the very next record? By its first records."
        ),
    ] = False,
    wait: Annotated[
        float, typer.Option(help="With --check: how many seconds to wait for a partition's first record.")
    ] = 300.0,
) -> None:
    """Show where MirrorMaker 2 would continue, and return the flow to it. Pause the flow's DAGs first.

    A dedicated MirrorMaker 2 needs nothing: its progress is up to date. Once it runs, --check compares its first records with
    the source's. Exit status 1: something is not verified, or it does not resume at the very next record.
    """
    from airmirror.runbooks.takeover.handback import positions, rest_body, write_offsets

    if check and (topic or write or yes):
        raise typer.BadParameter("--check only reads: first hand back, then start MirrorMaker 2, then check")
    with given.opened(shows=not (topic and yes)) as opened:
        if check:
            _check(opened, wait, given.as_json)
            return
        name = connector or opened.flow.settings.takeover_connector_name
        tasks: list[PostWindowTask] = []
        if topic and yes:
            found, tasks = write_offsets(opened, topic, name, f"handback-{uuid.uuid4().hex[:8]}")
        else:
            found = positions(opened)
        body, alias = rest_body(opened, found), opened.flow.source.alias
    if write is not None:
        try:
            write.write_text(json.dumps(body, indent=2))
        except OSError as error:
            raise typer.BadParameter(f"{write} can't be written: {error.strerror}", param_hint="--write") from error
    if given.as_json:
        print_json(console, body)
    else:
        rows = [(each.topic, each.partition, each.offset, each.offset + 1) for each in found]
        numbers = ("partition", "copied last", "continues at")
        title = f"{opened.flow.name}: where MirrorMaker 2 continues"
        show(console, table(title, ("topic", *numbers), rows, right=numbers, empty="nothing was copied"))
        show(console, _done(found_in=progress_topic(alias), topic=topic, name=name, yes=yes, count=len(found)))
        show(console, f"Once it runs: {command('handback', '--check', flow=opened.flow.name)}")
    for each in tasks:
        show(console, line(each.name, each.error or each.said, "red" if each.error else "green"))
    if any(each.error for each in tasks):
        raise typer.Exit(1)


def _done(*, found_in: str, topic: str, name: str, yes: bool, count: int) -> str:
    if not topic:
        return f"A dedicated MirrorMaker 2 finds it in {found_in}. For one on Connect: --topic, or --write."
    what = f"{counted(count, 'partition')} of {name!r} in {topic}"
    return f"Written: the progress of {what}." if yes else f"Nothing is written: --yes writes the progress of {what}."


def _check(opened: Opened, wait: float, as_json: bool) -> None:
    from airmirror.runbooks.takeover.handback_check import check_handback

    with telling(console) as tell:
        checked = check_handback(opened, wait, tell)
    if as_json:
        print_json(console, checked.as_dict())
    else:
        show(console, *shown_check(checked))
    if not checked.has_resumed:
        raise typer.Exit(1)


def shown_check(checked: HandbackCheck) -> list[RenderableType]:
    """The first records after a hand-back, for people: who is seen, a table, then what is wrong, run by run."""
    shown: list[RenderableType] = [line("running", each, GOOD) for each in checked.running]
    if checked.warning:
        shown.append(line("warning", checked.warning, DOUBTFUL))
    elif not checked.running:
        shown.append("No worker of MirrorMaker 2 is seen on the target.")
    cells: list[list[Cell]] = [
        [
            row.key.topic,
            row.key.partition,
            row.position,
            *(row.first or (None, None)),
            row.records,
            Text(f"{row.verdict}: {row.reason}" if row.reason else str(row.verdict), _colour(row)),
        ]
        for row in checked.partitions
    ]
    numbers = ("partition", "handed back at", "first record's offset", "on the target", "compared")
    title = f"{checked.flow}: where MirrorMaker 2 resumed"
    columns = ("topic", *numbers, "found")
    shown.append(table(title, columns, cells, right=numbers, empty="nothing was copied, so nothing was handed back"))
    shown += [_difference(row, each) for row in checked.partitions for each in row.differences]
    if checked.is_wrong:
        look = command("takeover", "plan", flow=checked.flow)
        shown.append(f"Stop MirrorMaker 2; {look} shows what it has copied since")
    return shown


def _colour(row: FirstRecords) -> str:
    from airmirror.runbooks.takeover.handback_check import WRONG, HandbackVerdict

    if row.verdict in WRONG:
        return BAD
    return GOOD if row.verdict in (HandbackVerdict.RESUMED, HandbackVerdict.NOTHING_NEW) else DOUBTFUL


def _difference(row: FirstRecords, each: CopyDifference) -> Text:
    from airmirror.runbooks.takeover.handback_check import HandbackVerdict

    records = "records" if each.records < 0 else counted(each.records, "record")
    of_source = f"source offsets {each.source[0]} to {each.source[1] - 1}"
    place = f"{row.remote_topic}-{row.key.partition}"
    if each.what is HandbackVerdict.GAP:
        return line(
            "gap", f"{row.key}, {of_source}: {records} not on the target before {place} offset {each.target[0]}"
        )
    where = f"{place}, offsets {each.target[0]} to {each.target[1] - 1}"
    if each.what is HandbackVerdict.TWICE:
        more = "" if each.records >= 0 else ", and what follows there"
        return line("twice", f"{where}: again {of_source}{more}")
    return line("not the source's", where)

"""``airmirror groups`` and ``groups apply``: consumer groups on both sides of a flow."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from airmirror.cli.failures import NOT_VERIFIED
from airmirror.cli.flow_options import FlowOptions, flow_command, is_of_subcommand
from airmirror.cli.options import console
from airmirror.cli.tables import Cell, cells_of, print_all, print_json, table
from airmirror.errors import command
from airmirror.flows.prepare import Opened, caught_up
from airmirror.ledger import GroupOffset

if TYPE_CHECKING:  # every command would load it at its start
    from airmirror.flows.positions import GroupRow

READ_COMMITTED = "Read the target with isolation.level=read_committed: others see aborted attempts, and records twice."

group_commands = typer.Typer(help="Consumer groups on both sides of a flow.", invoke_without_command=True)


@group_commands.callback()
@flow_command
def groups(
    given: FlowOptions,
    context: typer.Context,
    group: Annotated[list[str] | None, typer.Option("--group", help="Only this group; again for more.")] = None,
) -> None:
    """Show the offsets of consumer groups on both clusters, their lags, and whether the translation is exact."""
    if is_of_subcommand(context):
        return
    from airmirror.flows.positions import list_positions

    with given.opened(shows=True) as opened:
        flow, rows = opened.flow.name, list_positions(opened, group or ())
    if given.as_json:
        print_json(console, [asdict(row) for row in rows])
    else:
        _show(flow, rows)


@group_commands.command("apply")
@flow_command
def groups_apply(
    given: FlowOptions,
    group: Annotated[str, typer.Option("--group", help="The consumer group.")],
    yes: Annotated[bool, typer.Option("--yes", help="Write; without it nothing is.")] = False,
) -> None:
    """Move one group on the target to its position on the source; a dry run unless --yes. Prints how to undo it.

    Exit status: 1 the group is not where it should be in some partition of what the flow replicates; the rows say why.
    """
    from airmirror.flows.positions import NoSuchGroup
    from airmirror.offsets.groups import sync_group_offsets
    from airmirror.offsets.translation import Reason

    with given.opened(shows=not yes) as read:
        opened = caught_up(read)
        rows = sync_group_offsets(opened.flow, opened.ledger, [group], dry_run=not yes)
    if not rows:
        raise NoSuchGroup(opened.flow.name, opened.flow.source.alias, group)
    undo = list(undo_commands(opened, rows))
    is_applied = yes and any(row.reason in ("", Reason.AHEAD) for row in rows)
    if given.as_json:
        print_json(console, {"applied": is_applied, "rows": [asdict(row) for row in rows], "undo": undo})
    else:
        _show_applied(opened.flow.name, group, rows, yes)
        if yes and undo:
            print_all(console, "To undo, while the group has no members:", *undo)
    if yes and not (is_applied and all(row.reason in ("", Reason.AHEAD, Reason.NOT_REPLICATED) for row in rows)):
        raise typer.Exit(NOT_VERIFIED)


def _show(flow: str, rows: Sequence[GroupRow]) -> None:
    from airmirror.flows.positions import MOST_AGES

    numbers = (">position", ">lag", ">lag (s)", ">translated", ">on target", ">lag there", ">lag there (s)")
    cells = cells_of(
        rows,
        "group topic partition position lag lag_seconds translation on_target target_lag target_lag_seconds how",
        how=_how,
    )
    columns = ("group", "topic", ">partition", *numbers, "")
    empty = "no group has committed offsets of what the flow replicates"
    print_all(console, table(f"{flow}: groups", columns, cells, empty=empty))
    if len(rows) > MOST_AGES:
        print_all(console, f"Lags in seconds are looked up for at most {MOST_AGES} rows: name a group with --group.")
    if rows:
        print_all(console, READ_COMMITTED)


def _show_applied(flow: str, group: str, rows: Sequence[GroupOffset], done: bool) -> None:
    columns = ("topic", ">partition", ">position", ">on target before", ">on target" if done else ">would be", "")
    cells: list[list[Cell]] = []
    for row in rows:
        kept = "" if not row.reason else f"not moved: {row.reason}"
        again = f"{row.again} records will be read again" if row.again and not row.reason else ""
        to = row.downstream if not row.reason else row.on_target
        cells.append([row.topic, row.partition, row.position, row.on_target, to, kept or again])
    print_all(console, table(f"{flow}: {group}", columns, cells), READ_COMMITTED)
    if not done:
        apply = command("groups", "apply", "--group", group, "--yes", flow=flow)
        print_all(console, f"Nothing was written. Carry it out: {apply}")


def undo_commands(opened: Opened, rows: Sequence[GroupOffset]) -> Iterator[str]:
    """Yield Kafka's own commands that put the group back where it was on the target."""
    tool = f"kafka-consumer-groups.sh --bootstrap-server {','.join(opened.flow.target.bootstrap_servers)}"
    for row in rows:
        if row.reason or row.on_target == row.downstream:
            continue
        where = f"--group {shlex.quote(row.group)} --topic {shlex.quote(f'{row.remote_topic}:{row.partition}')}"
        if row.on_target is None:
            yield f"{tool} --delete-offsets {where}"
        else:
            yield f"{tool} --reset-offsets {where} --to-offset {row.on_target} --execute"


def _how(row: GroupRow) -> str:
    if row.reason:
        return row.reason
    again = f", {row.again} again" if row.again else ""
    return f"{'exact' if row.exact else 'estimated'}{again}"

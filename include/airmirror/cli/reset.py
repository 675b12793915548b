"""``airmirror reset``: the choices for topics that can't go on by themselves; a dry run unless ``--yes`` is given."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from airmirror.cli.show import MOST_ROWS, print_json
from airmirror.flows.prepare import Opened
from airmirror.flows.reset import Order, carry_out, consider, replace_identity, replaced_identity
from airmirror.windows.resets import Choice, Reset


def reset_topics(console: Console, opened: Opened, order: Order, yes: bool, as_json: bool) -> None:
    """Show what the order does; with ``yes`` do it."""
    if yes:
        with console.status("resetting") as status:
            resets = carry_out(opened, order, status.update)
    else:
        resets = consider(opened, order)
    if as_json:
        rows = [_as_dict(reset) for reset in resets]
        print_json(console, {"flow": opened.flow.name, "done": yes, "partitions": rows})
        return
    if not resets:
        console.print("Nothing to decide: every partition can go on by itself.")
        return
    console.print(_table(opened.flow.name, resets))
    if order.choice is Choice.NEW_TOPIC:
        new = ", ".join(sorted({reset.facts.remote_topic for reset in resets}))
        console.print(f"Everything is replicated again, into {new}; the remote topic until now stays as it is.")
    if order.choice is Choice.START_AGAIN:
        what = (
            "is deleted and created anew"
            if order.recreate
            else "keeps its records, and gets all of the source's behind"
        )
        console.print(f"The remote topic {what}; the mapping of offsets begins anew.")
    if not yes:
        console.print("A dry run: nothing was written. Carry it out with --yes --reason '…'.")


def reset_identity(console: Console, opened: Opened, by: str, reason: str, yes: bool) -> None:
    """Show whose internal topics the flow would go on with; with ``yes`` let it."""
    if yes:
        with console.status("resetting") as status:
            theirs = replace_identity(opened, by, reason, status.update)
    else:
        theirs = replaced_identity(opened)
    if theirs is None:
        console.print("Nothing to decide: the flow's internal topics are its own.")
        return
    console.print(
        f"{opened.flow.name} goes on with the progress of {theirs.name} (cluster ids {theirs.source_cluster_id} -> "
        f"{theirs.target_cluster_id}). Topics of a cluster that was replaced are to be reset one by one.",
        highlight=False,
    )
    if not yes:
        console.print("A dry run: nothing was written. Carry it out with --yes --reason '…'.")


def order_of(
    topics: Sequence[str], partitions: Sequence[int], choices: Sequence[Choice], recreate: bool, new: bool, by: str,
    reason: str,
) -> Order:  # fmt: skip
    """The order that the options make. Raises typer.BadParameter."""
    if len(choices) != 1:
        raise typer.BadParameter("say one of --start-again, --accept-loss and --forget")
    if not topics:
        raise typer.BadParameter("say which topics: --topic orders --topic payments")
    if recreate and (choices[0] is not Choice.START_AGAIN or partitions):
        raise typer.BadParameter("--recreate-remote-topic goes with --start-again, for whole topics")
    if new and (choices[0] is not Choice.START_AGAIN or partitions or recreate):
        raise typer.BadParameter(
            "--new-remote-topic goes with --start-again, for whole topics, and not with --recreate-remote-topic"
        )
    return Order(tuple(topics), tuple(partitions), Choice.NEW_TOPIC if new else choices[0], recreate, by, reason)


def _as_dict(reset: Reset) -> dict[str, object]:
    facts = reset.facts
    return {
        "topic": facts.topic, "partition": facts.partition, "remote_topic": facts.remote_topic,
        "choice": str(reset.choice), "problem": reset.problem, "position": facts.position, "start": reset.start,
        "lost_first": reset.lost_first, "lost": reset.lost, "target_end": facts.target_end,
        "segments_forgotten": len(reset.forgotten),
    }  # fmt: skip


def _table(flow: str, resets: Sequence[Reset]) -> Table:
    table = Table(
        title=f"{flow}: reset", title_justify="left", header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for column in ("topic", "partition", "what is wrong", "goes on at", "declared lost", "remote topic ends at"):
        table.add_column(column, overflow="fold")
    for reset in resets[:MOST_ROWS]:
        facts = reset.facts
        lost = f"{reset.lost_first:,} to {reset.lost_end - 1:,} ({reset.lost:,} offsets)" if reset.lost else "nothing"
        goes_on = f"{reset.start:,}" if reset.start >= 0 else "not any more"
        table.add_row(
            facts.topic, str(facts.partition), reset.problem or "nothing", goes_on, lost, f"{facts.target_end:,}"
        )
    if len(resets) > MOST_ROWS:
        table.caption = f"{len(resets) - MOST_ROWS} more rows: use --json"
    return table

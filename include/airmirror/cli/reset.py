"""``airmirror reset``: the choices for topics that can't continue by themselves; a dry run unless ``--yes`` is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from airmirror.cli.flow_options import FlowOptions, flow_command
from airmirror.cli.options import By, Yes, console, telling
from airmirror.cli.tables import Cell, print_all, print_json, table
from airmirror.errors import command
from airmirror.flows.prepare import Opened
from airmirror.rows import row_of, rows_of
from airmirror.windows.resets import Choice, Reset

if TYPE_CHECKING:  # every command would load it at its start
    from airmirror.flows.reset import ResetOrder


@flow_command
def reset(
    given: FlowOptions,
    by: By,
    topic: Annotated[list[str] | None, typer.Option(help="A source topic; may be repeated.")] = None,
    partition: Annotated[list[int] | None, typer.Option(help="Only this partition; may be repeated.")] = None,
    start_again: Annotated[
        bool,
        typer.Option("--start-again", help="Copy again from the source's first offset, after the existing records."),
    ] = False,
    recreate_remote_topic: Annotated[
        bool,
        typer.Option(
            "--recreate-remote-topic", help="With --start-again: delete the remote topic and create it again."
        ),
    ] = False,
    new_remote_topic: Annotated[
        bool,
        typer.Option(
            "--new-remote-topic",
            help="With --start-again: into a new remote topic, with a number after its name; the old one stays as it is.",
        ),
    ] = False,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Skip to the first offset both clusters can continue from; record skipped and differing records as lost.",
        ),
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Forget the progress of a topic that the source no longer has.")
    ] = False,
    identity: Annotated[
        bool,
        typer.Option("--identity", help="Continue with internal topics written under another alias or cluster id."),
    ] = False,
    reason: Annotated[str, typer.Option(help="Why; it is kept with the decision.")] = "",
    yes: Yes = False,
) -> None:
    """Decide about topics that were deleted, created again or truncated. Without a choice it shows the problems, without
    --yes the changes.
    """
    if yes and not reason:
        raise typer.BadParameter("say why: --reason '…' is kept with the decision")
    others = (topic, partition, start_again, recreate_remote_topic, new_remote_topic, accept_loss, forget)
    if identity and any(others):
        raise typer.BadParameter("--identity is of the flow: no topic and no other choice goes with it")
    said = {Choice.START_AGAIN: start_again, Choice.ACCEPT_LOSS: accept_loss, Choice.FORGET: forget}
    with given.opened(shows=not yes) as opened:
        chosen = [choice for choice, is_said in said.items() if is_said]
        if identity:
            _reset_identity(opened, by, reason, yes, given.as_json)
        elif not chosen and not yes:
            _show_problems(opened, topic or [], given.as_json)
        else:
            from airmirror.flows.reset import ResetOrder

            _check_choices(topic or (), partition or (), chosen, recreate_remote_topic, new_remote_topic)
            order = ResetOrder(
                topics=tuple(topic or ()),
                partitions=tuple(partition or ()),
                choice=Choice.NEW_TOPIC if new_remote_topic else chosen[0],
                recreate=recreate_remote_topic,
                by=by,
                reason=reason,
            )
            _reset_topics(opened, order, yes, given.as_json)


def _reset_topics(opened: Opened, order: ResetOrder, yes: bool, as_json: bool) -> None:
    """Show what the order does; with ``yes`` do it."""
    from airmirror.flows.reset import carry_out, consider

    if yes:
        with telling(console, "resetting") as tell:
            resets = carry_out(opened, order, tell)
    else:
        resets = consider(opened, order)
    if as_json:
        rows = rows_of(
            resets,
            "topic=facts.topic partition=facts.partition remote_topic=facts.remote_topic choice problem "
            "position=facts.position start lost_first lost target_end=facts.target_end mappings_forgotten",
            choice=lambda reset: str(reset.choice),
            mappings_forgotten=lambda reset: len(reset.forgotten),
        )
        print_json(console, {"flow": opened.flow.name, "done": yes, "partitions": rows})
        return
    if not resets:
        print_all(console, "Nothing to decide: all that was named can continue by itself.")
        return
    print_all(console, _table(opened.flow.name, resets))
    if order.choice is Choice.NEW_TOPIC:
        new = ", ".join(sorted({reset.facts.remote_topic for reset in resets}))
        print_all(console, f"Everything is replicated again, into {new}; the remote topic until now stays as it is.")
    if order.choice is Choice.START_AGAIN:
        what = (
            "is deleted and created again"
            if order.recreate
            else "keeps its records, and all of the source's are appended"
        )
        print_all(console, f"The remote topic {what}; the mapping of offsets starts over.")
    print_all(console, "Done: the next window continues there." if yes else _carry_out(opened, *_options(order)))


def _reset_identity(opened: Opened, by: str, reason: str, yes: bool, as_json: bool) -> None:
    """Show whose internal topics the flow would continue with; with ``yes`` let it."""
    from airmirror.flows.reset import replace_identity, replaced_identity

    if yes:
        with telling(console, "resetting") as tell:
            theirs = replace_identity(opened, by, reason, tell)
    else:
        theirs = replaced_identity(opened)
    if as_json:
        row = row_of(theirs, "name source_cluster_id target_cluster_id") if theirs else None
        print_json(console, {"flow": opened.flow.name, "done": yes, "continues": row})
        return
    if theirs is None:
        print_all(console, "Nothing to decide: the flow's internal topics are its own.")
        return
    print_all(
        console,
        f"{opened.flow.name} continues with the progress of {theirs.name} (cluster ids {theirs.source_cluster_id} -> "
        f"{theirs.target_cluster_id}). Topics of a cluster that was replaced are to be reset one by one.",
    )
    if not yes:
        print_all(console, _carry_out(opened, "--identity"))


def _check_choices(
    topics: Sequence[str], partitions: Sequence[int], choices: Sequence[Choice], recreate: bool, new: bool
) -> None:
    """Raises typer.BadParameter where the options make no order."""
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


def _options(order: ResetOrder) -> list[str]:
    """The options that make the order."""
    topics = [part for topic in order.topics for part in ("--topic", topic)]
    partitions = [part for number in order.partitions for part in ("--partition", str(number))]
    choice = {Choice.NEW_TOPIC: ["--start-again", "--new-remote-topic"]}.get(order.choice, [f"--{order.choice}"])
    return [*topics, *partitions, *choice, *(["--recreate-remote-topic"] if order.recreate else [])]


def _show_problems(opened: Opened, topics: Sequence[str], as_json: bool) -> None:
    """Print which partitions can't continue by themselves, and the choices there are."""
    from airmirror.flows.reset import undecided

    found = undecided(opened, topics)
    if as_json:
        rows = rows_of(found, "topic partition problem")
        print_json(console, {"flow": opened.flow.name, "done": False, "partitions": rows})
        return
    columns = ("topic", ">partition", "what is wrong")
    wrong = [(each.topic, each.partition, each.problem) for each in found]
    title = f"{opened.flow.name}: what waits for a decision"
    print_all(console, table(title, columns, wrong, empty="every partition can continue by itself"))
    if found:
        print_all(
            console,
            "Choose with --topic and one of --start-again, --accept-loss and --forget; it is a dry run unless --yes.",
        )


def _table(flow: str, resets: Sequence[Reset]) -> RenderableType:
    columns = ("topic", ">partition", "what is wrong", "continues at", "declared lost", ">remote topic ends at")
    rows: list[list[Cell]] = []
    for reset in resets:
        facts = reset.facts
        lost = f"{reset.lost_first:,} to {reset.lost_end - 1:,} ({reset.lost:,} offsets)" if reset.lost else "nothing"
        resumes_at = f"{reset.start:,}" if reset.start >= 0 else "not any more"
        rows.append([facts.topic, facts.partition, reset.problem or "nothing", resumes_at, lost, facts.target_end])
    return table(f"{flow}: reset", columns, rows)


def _carry_out(opened: Opened, *options: str) -> str:
    how = command("reset", *options, "--yes", "--reason", "…", flow=opened.flow.name)
    return f"A dry run: nothing was written. Carry it out: {how}"

"""The commands by which an operator decides: ``hold add``, ``hold release``, ``hold list``, ``reset``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from airmirror.cli import plain, show
from airmirror.cli.failures import failures_reported
from airmirror.cli.options import (
    DEFAULT_CONFIG,
    DEFAULT_LEDGER,
    AsJson,
    By,
    Config,
    FlowName,
    LedgerUrl,
    Secrets,
    Yes,
    console,
    opened_flow,
)
from airmirror.cli.tables import print_json
from airmirror.cli.tables import show as print_all
from airmirror.wire.segments import Decision

hold_commands = typer.Typer(no_args_is_help=True, help="Partitions that windows leave out until an operator decides.")

Topic = Annotated[str, typer.Argument(help="A topic of the source.")]
Partitions = Annotated[list[int] | None, typer.Option("--partition", help="A partition; again for more. Default: all.")]
Reason = Annotated[str, typer.Option(help="Why, for those who find it later.")]


@hold_commands.command("add")
@failures_reported
def hold_add(
    topic: Topic,
    reason: Reason,
    by: By,
    flow: FlowName = "",
    partition: Partitions = None,
    yes: Yes = False,
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Hold partitions from the next window on; a window that runs ends as it began. A dry run unless --yes."""
    from airmirror.flows.holds import add_holds

    with opened_flow(config, flow, ledger, secrets, shows=not yes) as opened:
        name = opened.flow.name
        found = add_holds(opened, topic, partition or (), reason=reason, by=by, write=yes)
    _show(name, found, yes, as_json)


@hold_commands.command("release")
@failures_reported
def hold_release(
    topic: Topic,
    reason: Reason,
    by: By,
    flow: FlowName = "",
    partition: Partitions = None,
    yes: Yes = False,
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Let windows take held partitions again. The gate judges its own holds again, and holds them again if they fail. A dry run
    unless --yes.
    """
    from airmirror.flows.holds import release_holds

    with opened_flow(config, flow, ledger, secrets, shows=not yes) as opened:
        name = opened.flow.name
        found = release_holds(opened, topic, partition or (), reason=reason, by=by, write=yes)
    _show(name, found, yes, as_json)


def _show(flow: str, found: Sequence[Decision], done: bool, as_json: bool) -> None:
    if as_json:
        print_json(console, {"flow": flow, "done": done, "decisions": plain.records(found)})
    else:
        print_all(console, show.decisions(found), *([] if done else ["Nothing was written: --yes does it."]))


@hold_commands.command("list")
@failures_reported
def hold_list(
    flow: FlowName = "",
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    secrets: Secrets = None,
    history: Annotated[bool, typer.Option("--history", help="All decisions, the oldest first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show holds: by whom, since when and why; and partitions that fail in every window, but are not held."""
    from airmirror.flows.holds import list_decisions, list_holds
    from airmirror.flows.status import still_failing

    with opened_flow(config, flow, ledger, secrets, shows=True) as opened:
        decisions, holds = (list_decisions(opened), []) if history else ([], list_holds(opened))
        failing = [] if history else still_failing(opened.ledger)
    if as_json:
        print_json(console, plain.records(decisions or holds))
    else:
        print_all(console, show.decisions(decisions) if history else show.holds(holds), *show.failing(failing))


@failures_reported
def reset(
    by: By,
    flow: FlowName = "",
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
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Decide about topics that were deleted, created again or truncated. Without a choice it shows the problems, without
    --yes the changes.
    """
    from airmirror.cli.reset import order_of, reset_identity, reset_topics, show_problems
    from airmirror.windows.resets import Choice

    if yes and not reason:
        raise typer.BadParameter("say why: --reason '…' is kept with the decision")
    said = {Choice.START_AGAIN: start_again, Choice.ACCEPT_LOSS: accept_loss, Choice.FORGET: forget}
    with opened_flow(config, flow, ledger, secrets, shows=not yes) as opened:
        chosen = [choice for choice, is_said in said.items() if is_said]
        if identity:
            reset_identity(console, opened, by, reason, yes)
        elif not chosen and not yes:
            show_problems(console, opened, topic or [], as_json)
        else:
            order = order_of(
                topics=topic or [],
                partitions=partition or [],
                choices=chosen,
                recreate=recreate_remote_topic,
                new=new_remote_topic,
                by=by,
                reason=reason,
            )
            reset_topics(console, opened, order, yes, as_json)

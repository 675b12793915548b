"""The commands of ``airmirror``, from checking a configuration to the embedded stack."""

from __future__ import annotations

import getpass
import uuid
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from airmirror.cli import show
from airmirror.cli.failures import failures_reported
from airmirror.config import explain, load, resolve
from airmirror.flows.prepare import Prepared, open_flow, prepare
from airmirror.topics.names import check

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Kafka topics, mirrored in windows that are proven.")
ledger_commands = typer.Typer(no_args_is_help=True, help="The SQL mirror of a flow's internal topics.")
hold_commands = typer.Typer(no_args_is_help=True, help="Partitions that windows leave out until somebody decides.")
app.add_typer(ledger_commands, name="ledger")
app.add_typer(hold_commands, name="hold")
group_commands = typer.Typer(help="Consumer groups on both sides of a flow.", invoke_without_command=True)
app.add_typer(group_commands, name="groups")

DEFAULT_CONFIG = Path("include/mirror.properties")
DEFAULT_EXPECTATIONS = Path("include/expectations")
DEFAULT_LEDGER = "sqlite:///.local/ledger.db"
DEFAULT_SPARK = "sc://127.0.0.1:15002"

Config = Annotated[Path, typer.Option("--config", envvar="AIRMIRROR_CONFIG", help="The mirror.properties file.")]
FlowName = Annotated[str, typer.Option("--flow", help="The flow, as 'east->west'.")]
LedgerUrl = Annotated[str, typer.Option("--ledger", envvar="AIRMIRROR_LEDGER", help="The ledger's SQLAlchemy URL.")]
Expectations = Annotated[
    Path, typer.Option("--expectations", envvar="AIRMIRROR_EXPECTATIONS", help="The directory of the gate's suites.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

console = Console()
if not console.is_terminal:
    console.width = max(console.width, 120)  # into a file or a pipe nothing is folded


@app.command()
@failures_reported
def config(
    config: Config = DEFAULT_CONFIG,
    explain_keys: Annotated[bool, typer.Option("--explain", help="List every key with what it does here.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check the configuration and show what counts for each flow, and the line it comes from."""
    if explain_keys:
        from airmirror.clusters.client_settings import explain_clients

        rows, clients = explain(), explain_clients()
        if as_json:
            show.print_json(console, [asdict(row) for row in (*rows, *clients)])
        else:
            console.print(show.keys(rows, clients))
        return
    configuration = load(config)
    check(configuration)
    values = {name: resolve(configuration, name) for name in configuration.flows}
    if as_json:
        show.print_json(console, {name: [asdict(row) for row in effective] for name, effective in values.items()})
        return
    for note in configuration.notes:
        console.print(f"[yellow]note[/] {note}")
    for name, effective in values.items():
        console.print(show.values(name, configuration.flows[name].enabled, effective))


@app.command()
@failures_reported
def plan(
    flow: FlowName, config: Config = DEFAULT_CONFIG, ledger: LedgerUrl = DEFAULT_LEDGER, as_json: AsJson = False
) -> None:
    """Show what the next window would do; nothing is written."""
    from airmirror.flows.prepare import dry_run

    with open_flow(config, flow, ledger) as opened:
        topics, planned = dry_run(opened)
    if as_json:
        show.print_json(console, show.plan_json(topics, planned))
    else:
        console.print(show.plan(topics, planned))


@app.command()
@failures_reported
def topics(
    flow: FlowName,
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    plan_only: Annotated[bool, typer.Option("--plan", help="Only what the next window will do.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what differs between topics and their remote topics, and why it will or will not be changed."""
    from airmirror.cli.topics import show_topics

    with open_flow(config, flow, ledger) as opened:
        show_topics(console, opened, plan_only, as_json)


@app.command("run-window")
@failures_reported
def run_window(
    flow: FlowName,
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    spark: Annotated[str, typer.Option(envvar="AIRMIRROR_SPARK", help="The Spark Connect server.")] = DEFAULT_SPARK,
    local: Annotated[bool, typer.Option("--local", help="Run Spark in this process.")] = False,
    window: Annotated[str, typer.Option(help="The window's id; a new one by default.")] = "",
    expectations: Expectations = DEFAULT_EXPECTATIONS,
    no_expectations: Annotated[
        bool, typer.Option("--no-expectations", help="Judge by the engine's own checks alone; what is held stays held.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Replicate, compare and verify everything that is new. Exit status: 0 verified, 1 not, 2 bad input."""
    from airmirror.flows.gates import expectations_of
    from airmirror.on_spark.windows import run_judged

    identifier = window or _identifier()
    by = expectations_of(expectations, wanted=not no_expectations)
    if by.suites is None:
        Console(stderr=True).print(f"[yellow]warning[/] judged by {by}", highlight=False)
    with open_flow(config, flow, ledger) as opened:
        prepared: Prepared = prepare(opened)
        if not as_json:
            for line in prepared.report.lines:
                console.print(line, highlight=False, markup=False)
        with console.status(f"window {identifier}") as status:
            said = f"window {identifier}: "
            result = run_judged(
                prepared, None if local else spark, identifier, by,
                tell=lambda phase: status.update(said + phase),
                report=lambda progress: status.update(said + show.progress(progress)),
            ).result  # fmt: skip
    if as_json:
        shown = show.window_json(result, prepared.refused, prepared.report)
        show.print_json(console, shown | {"judged_by": str(by)})
    else:
        console.print(show.window(result))
        for line in show.problems(result, prepared.refused):
            console.print(line)
    if not result.is_verified or prepared.refused:
        raise typer.Exit(1)


@app.command()
@failures_reported
def verify(
    flow: FlowName,
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    topics: Annotated[str, typer.Option(help="Only these topics: names, separated by commas.")] = "",
    expectations: Expectations = DEFAULT_EXPECTATIONS,
    as_json: AsJson = False,
) -> None:
    """Read both logs again, compare every replicated record that both still hold, and judge again what is held."""
    from airmirror.flows.gates import expectations_of, judge_flow
    from airmirror.flows.verification import compare_all

    chosen = [name.strip() for name in topics.split(",") if name.strip()]
    by = expectations_of(expectations)
    with open_flow(config, flow, ledger) as opened, console.status("comparing both logs"):
        rows = compare_all(opened, chosen)
        errors = []
        if not any(row.error for row in rows):
            errors = judge_flow(opened, by, window=f"verify-{_identifier()}")[0].errors
    if as_json:
        show.print_json(console, [row.as_dict() for row in rows])
    else:
        console.print(show.comparison(rows))
        for error in errors:
            console.print(f"[red]held[/] {error}")
    if errors or any(row.error for row in rows):
        raise typer.Exit(1)


@app.command()
@failures_reported
def status(
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    as_json: AsJson = False,
) -> None:
    """Show the enabled flows: their partitions, lag, verified offsets, holds, and the last windows."""
    from airmirror.flows.status import flow_status

    found = []
    for enabled in load(config).enabled:
        with open_flow(config, enabled.name, ledger) as opened:
            found.append(flow_status(opened))
    if as_json:
        show.print_json(console, [item.as_dict() for item in found])
    else:
        for item in found:
            console.print(show.status(item))


@app.command()
@failures_reported
def heartbeat(flow: FlowName, config: Config = DEFAULT_CONFIG) -> None:
    """Write one heartbeat of the flow to its target, as the DAG heartbeats.<target> does on its rhythm."""
    from airmirror.config.pairs import heartbeat_flow
    from airmirror.offsets.heartbeats import emit_heartbeat

    topic = emit_heartbeat(heartbeat_flow(load(config), flow))
    console.print(f"a heartbeat of {flow} was written to {topic}", highlight=False)


@app.command()
@failures_reported
def reset(
    flow: FlowName,
    topic: Annotated[list[str] | None, typer.Option(help="A source topic; may be repeated.")] = None,
    partition: Annotated[list[int] | None, typer.Option(help="Only this partition; may be repeated.")] = None,
    start_again: Annotated[
        bool,
        typer.Option("--start-again", help="Begin at the source's first offset, behind what the remote topic has."),
    ] = False,
    recreate_remote_topic: Annotated[
        bool,
        typer.Option("--recreate-remote-topic", help="With --start-again: delete the remote topic, create it anew."),
    ] = False,
    new_remote_topic: Annotated[
        bool,
        typer.Option(
            "--new-remote-topic",
            help="With --start-again: into a new remote topic, with a number behind its name; the old one stays as it is.",
        ),
    ] = False,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Go on where both sides can, and declare what lies between, or is not verified and differs, as lost.",
        ),
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Forget the progress of a topic that the source does not have any more.")
    ] = False,
    identity: Annotated[
        bool, typer.Option("--identity", help="Go on with internal topics written under another alias or cluster id.")
    ] = False,
    reason: Annotated[str, typer.Option(help="Why; it is kept with the decision.")] = "",
    by: Annotated[str, typer.Option(help="Who decides; user@host if not given.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do it; else nothing is written.")] = False,
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    as_json: AsJson = False,
) -> None:
    """Decide about topics that were deleted, created again or truncated. Shows what would be done, unless --yes."""
    from airmirror.cli.reset import order_of, reset_identity, reset_topics
    from airmirror.flows.reset import whoami
    from airmirror.windows.resets import Choice

    if yes and not reason:
        raise typer.BadParameter("say why: --reason '…' is kept with the decision")
    said = {Choice.START_AGAIN: start_again, Choice.ACCEPT_LOSS: accept_loss, Choice.FORGET: forget}
    by = by or whoami()
    if identity:
        with open_flow(config, flow, ledger) as opened:
            reset_identity(console, opened, by, reason, yes)
        return
    chosen = [choice for choice, is_said in said.items() if is_said]
    order = order_of(topic or [], partition or [], chosen, recreate_remote_topic, new_remote_topic, by, reason)
    with open_flow(config, flow, ledger) as opened:
        reset_topics(console, opened, order, yes, as_json)


@ledger_commands.command("rebuild")
@failures_reported
def rebuild(flow: FlowName, config: Config = DEFAULT_CONFIG, ledger: LedgerUrl = DEFAULT_LEDGER) -> None:
    """Make the flow's part of the ledger anew from Kafka."""
    from airmirror.flows.prepare import read_again

    with open_flow(config, flow, ledger) as opened, console.status("reading the internal topics"):
        counts = read_again(opened)
    console.print(f"ledger of {flow}: " + ", ".join(f"{count} {name}" for name, count in counts.items()))


GroupName = Annotated[str, typer.Option("--group", help="The consumer group.")]


@group_commands.callback()
@failures_reported
def groups(
    context: typer.Context,
    flow: Annotated[str, typer.Option("--flow", help="The flow, as 'east->west'.")] = "",
    group: Annotated[list[str] | None, typer.Option("--group", help="Only this group; again for more.")] = None,
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    as_json: AsJson = False,
) -> None:
    """Show where consumer groups stand on both clusters, their lags, and whether their translation is exact."""
    if context.invoked_subcommand is not None:
        return
    from airmirror.cli.groups import show_groups

    with open_flow(config, flow, ledger) as opened:
        show_groups(console, opened, group or (), as_json)


@group_commands.command("apply")
@failures_reported
def groups_apply(
    flow: FlowName,
    group: GroupName,
    yes: Annotated[bool, typer.Option("--yes", help="Write; without it nothing is.")] = False,
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    as_json: AsJson = False,
) -> None:
    """Move one group on the target to where it stands on the source; a dry run unless --yes. Prints how to undo it."""
    from airmirror.cli.groups import apply_groups

    with open_flow(config, flow, ledger) as opened:
        apply_groups(console, opened, group, yes, as_json)


@app.command()
@failures_reported
def translate(
    flow: FlowName,
    group: GroupName,
    at: Annotated[str | None, typer.Option(help="An offset or a time, instead of the group's positions.")] = None,
    topic: Annotated[str | None, typer.Option(help="Only this topic of the source.")] = None,
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    as_json: AsJson = False,
) -> None:
    """Show where a group's positions are on the target, or where an offset or a time in its partitions would be."""
    from airmirror.cli.groups import show_translation

    with open_flow(config, flow, ledger) as opened:
        show_translation(console, opened, group, at, topic, as_json)


Topic = Annotated[str, typer.Argument(help="A topic of the source.")]
Partitions = Annotated[list[int] | None, typer.Option("--partition", help="A partition; again for more. Default: all.")]
Reason = Annotated[str, typer.Option(help="Why, for those who find it later.")]
By = Annotated[str, typer.Option(help="Who decides.", default_factory=getpass.getuser, show_default="you")]


@hold_commands.command("add")
@failures_reported
def hold_add(
    topic: Topic, flow: FlowName, reason: Reason, by: By, partition: Partitions = None,
    config: Config = DEFAULT_CONFIG, ledger: LedgerUrl = DEFAULT_LEDGER,
) -> None:  # fmt: skip
    """Hold partitions from the next window on; a window that runs ends as it began."""
    from airmirror.flows.holds import add_holds

    with open_flow(config, flow, ledger) as opened:
        console.print(show.decisions(add_holds(opened, topic, partition or (), reason=reason, by=by)))


@hold_commands.command("release")
@failures_reported
def hold_release(
    topic: Topic, flow: FlowName, reason: Reason, by: By, partition: Partitions = None,
    config: Config = DEFAULT_CONFIG, ledger: LedgerUrl = DEFAULT_LEDGER,
) -> None:  # fmt: skip
    """Let windows take held partitions again. What the gate held is judged anew, and held anew if it fails again."""
    from airmirror.flows.holds import release_holds

    with open_flow(config, flow, ledger) as opened:
        console.print(show.decisions(release_holds(opened, topic, partition or (), reason=reason, by=by)))


@hold_commands.command("list")
@failures_reported
def hold_list(
    flow: FlowName, config: Config = DEFAULT_CONFIG, ledger: LedgerUrl = DEFAULT_LEDGER,
    history: Annotated[bool, typer.Option("--history", help="All decisions, the oldest first.")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Show what is held, by whom, since when and why."""
    from airmirror.flows.holds import list_decisions, list_holds

    with open_flow(config, flow, ledger) as opened:
        if history:
            decisions = list_decisions(opened)
            show.print_json(console, show.plain(decisions)) if as_json else console.print(show.decisions(decisions))
        else:
            holds = list_holds(opened)
            show.print_json(console, show.plain(holds)) if as_json else console.print(show.holds(holds))


@app.command()
@failures_reported
def demo(
    seconds: Annotated[int, typer.Option(help="How long records go on arriving while windows run.")] = 20,
) -> None:
    """Start two clusters and Spark, mirror real records between them in two windows, show the proof, stop everything."""
    from airmirror.cli.demo import run_demo

    raise typer.Exit(run_demo(console, seconds))


@app.command()
@failures_reported
def up() -> None:
    """Start two clusters with the demo's records and Spark Connect, and leave them running."""
    from airmirror.cli import stack

    raise typer.Exit(stack.up(console))


@app.command()
@failures_reported
def down() -> None:
    """Stop what `airmirror up` has started."""
    from airmirror.cli import stack

    raise typer.Exit(stack.down(console))


def _identifier() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:6]}"


if __name__ == "__main__":
    app()

"""The commands of ``airmirror``: which there are, and those that stand alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airmirror import __version__
from airmirror.cli import closing, configuration, decisions, windows
from airmirror.cli.compare import compare
from airmirror.cli.failback import failback_commands
from airmirror.cli.failover import failover_commands
from airmirror.cli.failures import failures_reported
from airmirror.cli.handback import handback
from airmirror.cli.migration import migration_commands
from airmirror.cli.options import (
    DEFAULT_CONFIG,
    DEFAULT_LEDGER,
    AsJson,
    Config,
    FlowName,
    LedgerUrl,
    Secrets,
    Yes,
    console,
    loaded,
    opened_flow,
    with_connections,
)
from airmirror.cli.report import report_commands
from airmirror.cli.takeover import takeover_commands

LOOK, COPY, PROVE = "Look", "Copy", "Prove"  # the parts of --help
DECIDE, MOVE, TRY = "Decide", "Move", "Try it"

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Kafka topics, mirrored in windows that are proven.",
    context_settings={"help_option_names": ["--help", "-h"]},
)
ledger_commands = typer.Typer(no_args_is_help=True, help="The SQL mirror of a flow's internal topics.")
group_commands = typer.Typer(help="Consumer groups on both sides of a flow.", invoke_without_command=True)

app.command("config", rich_help_panel=LOOK)(configuration.config)
app.command("status", rich_help_panel=LOOK)(windows.status)
app.command("plan", rich_help_panel=LOOK)(windows.plan)
app.command("run-window", rich_help_panel=COPY)(windows.run_window)
app.command("verify", rich_help_panel=PROVE)(windows.verify)
app.command("topics", rich_help_panel=LOOK)(windows.topics)
app.command("compare", rich_help_panel=PROVE)(compare)
app.add_typer(report_commands, name="report", rich_help_panel=PROVE)
app.add_typer(decisions.hold_commands, name="hold", rich_help_panel=DECIDE)
app.command("reset", rich_help_panel=DECIDE)(decisions.reset)
app.add_typer(takeover_commands, name="takeover", rich_help_panel=MOVE)
app.command("handback", rich_help_panel=MOVE)(handback)
app.add_typer(closing.flow_commands, name="flow", rich_help_panel=DECIDE)
app.add_typer(failover_commands, name="failover", rich_help_panel=MOVE)
app.add_typer(failback_commands, name="failback", rich_help_panel=MOVE)
app.add_typer(migration_commands, name="migration", rich_help_panel=MOVE)
app.add_typer(group_commands, name="groups", rich_help_panel=LOOK)

GroupName = Annotated[str, typer.Option("--group", help="The consumer group.")]


@group_commands.callback()
@failures_reported
def groups(
    context: typer.Context,
    flow: FlowName = "",
    group: Annotated[list[str] | None, typer.Option("--group", help="Only this group; again for more.")] = None,
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Show the offsets of consumer groups on both clusters, their lags, and whether the translation is exact."""
    if context.invoked_subcommand is not None:
        return
    from airmirror.cli.groups import show_groups

    with opened_flow(config, flow, ledger, secrets, shows=True) as opened:
        show_groups(console, opened, group or (), as_json)


@group_commands.command("apply")
@failures_reported
def groups_apply(
    group: GroupName,
    flow: FlowName = "",
    yes: Annotated[bool, typer.Option("--yes", help="Write; without it nothing is.")] = False,
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Move one group on the target to its position on the source; a dry run unless --yes. Prints how to undo it."""
    from airmirror.cli.groups import apply_groups

    with opened_flow(config, flow, ledger, secrets, shows=not yes) as opened:
        apply_groups(console, opened, group, yes, as_json)


@app.command(rich_help_panel=LOOK)
@failures_reported
def translate(
    group: Annotated[str, typer.Option("--group", help="The consumer group.")] = "",
    flow: FlowName = "",
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
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Translate a group's positions to the target, or an offset or a time in its partitions; or the positions in a file."""
    from airmirror.cli.groups import show_file_translation, show_translation

    if (positions is None) != (to is None) or bool(group) == bool(positions) or (positions and at is not None):
        raise typer.BadParameter("give either --group, or --from and --to")
    with opened_flow(config, flow, ledger, secrets, shows=True) as opened:
        if positions and to:
            show_file_translation(
                console=console, opened=opened, path=positions, to=to, topic=topic or "", as_json=as_json
            )
        else:
            show_translation(console=console, opened=opened, group=group, at=at, topic=topic, as_json=as_json)


@app.command(rich_help_panel=COPY)
@failures_reported
def heartbeat(flow: FlowName = "", yes: Yes = False, config: Config = DEFAULT_CONFIG, secrets: Secrets = None) -> None:
    """Write one heartbeat of the flow to its target, as the DAG heartbeats.<target> does on its rhythm."""
    from airmirror.config.pairs import heartbeat_flow
    from airmirror.offsets.heartbeats import emit_heartbeat

    loaded_ = loaded(config, secrets).configuration
    found = heartbeat_flow(loaded_, flow or loaded_.flow().name)
    if not yes:
        console.print(f"Nothing was written: --yes writes a heartbeat of {found.name}.", highlight=False)
        return
    topic = emit_heartbeat(with_connections(loaded_, found))
    console.print(f"a heartbeat of {found.name} was written to {topic}", highlight=False)


app.add_typer(ledger_commands, name="ledger", rich_help_panel=COPY)


@ledger_commands.command("rebuild")
@failures_reported
def rebuild(
    flow: FlowName = "", config: Config = DEFAULT_CONFIG, ledger: LedgerUrl = DEFAULT_LEDGER, secrets: Secrets = None
) -> None:
    """Rebuild the flow's part of the ledger from Kafka."""
    from airmirror.flows.prepare import read_again

    with opened_flow(config, flow, ledger, secrets) as opened, console.status("reading the internal topics"):
        counts = read_again(opened)
    console.print(f"ledger of {opened.flow.name}: " + ", ".join(f"{count} {name}" for name, count in counts.items()))


def _tell_version(wanted: bool) -> None:
    if wanted:
        console.print(f"airmirror {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def airmirror(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command(rich_help_panel=TRY)
@failures_reported
def demo(
    seconds: Annotated[int, typer.Option(help="How long records keep arriving while windows run.")] = 20,
    take_over: Annotated[
        bool,
        typer.Option("--take-over", help="Instead: take over from a real MirrorMaker 2 under load, hand back, again."),
    ] = False,
    migration: Annotated[
        bool,
        typer.Option("--migration", help="Instead: move a small shop's producers and consumers to another cluster."),
    ] = False,
    failover: Annotated[
        bool,
        typer.Option("--failover", help="Instead: kill a source in mid-write, fail over, rescue, fail back."),
    ] = False,
) -> None:
    """Start two clusters, Spark and Airflow, let Airflow mirror real records while more arrive, show the proof, stop all."""
    if take_over:
        from airmirror.cli.demo_takeover import run_takeover_demo

        raise typer.Exit(run_takeover_demo(console, seconds))
    if migration:
        from airmirror.cli.demo_migration import run_migration_demo

        raise typer.Exit(run_migration_demo(console, seconds))
    if failover:
        from airmirror.cli.demo_failover import run_failover_demo

        raise typer.Exit(run_failover_demo(console, seconds))
    from airmirror.cli.demo import run_demo

    raise typer.Exit(run_demo(console, seconds))


@app.command(rich_help_panel=TRY)
@failures_reported
def up() -> None:
    """Start two clusters with the demo's records, Spark and Airflow, and leave them running."""
    from airmirror.cli import stack

    raise typer.Exit(stack.up(console))


@app.command(rich_help_panel=TRY)
@failures_reported
def down() -> None:
    """Stop what `airmirror up` has started."""
    from airmirror.cli import stack

    raise typer.Exit(stack.down(console))


if __name__ == "__main__":
    app()

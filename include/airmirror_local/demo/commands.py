"""``airmirror demo``, ``up`` and ``down``: the commands that start clusters, Spark and Airflow on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from airmirror.cli.failures import failures_reported
from airmirror.cli.options import console


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
        from airmirror_local.demo.takeover import run_takeover_demo

        raise typer.Exit(run_takeover_demo(console, seconds))
    if migration:
        from airmirror_local.demo.migration import run_migration_demo

        raise typer.Exit(run_migration_demo(console, seconds))
    if failover:
        from airmirror_local.demo.failover import run_failover_demo

        raise typer.Exit(run_failover_demo(console, seconds))
    from airmirror_local.demo.mirror import run_demo

    raise typer.Exit(run_demo(console, seconds))


@failures_reported
def up() -> None:
    """Start two clusters with the demo's records, Spark and Airflow, and leave them running."""
    from airmirror_local.demo.up import start

    raise typer.Exit(start(console))


@failures_reported
def down() -> None:
    """Stop what `airmirror up` has started."""
    from airmirror_local.demo.up import stop

    raise typer.Exit(stop(console))


def add_commands(app: typer.Typer, panel: str) -> None:
    """Add the commands to those of ``airmirror``, in this part of its help."""
    for command in (demo, up, down):
        app.command(rich_help_panel=panel)(command)

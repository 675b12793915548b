"""``airmirror run-window``: what a run in Airflow does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from airmirror.cli import plain, show
from airmirror.cli.extras import needs
from airmirror.cli.failures import NOT_VERIFIED, status_of_all
from airmirror.cli.flow_options import FlowOptions, flow_command
from airmirror.cli.options import (
    DEFAULT_SPARK,
    Expectations,
    Spark,
    console,
    expectations_in,
    new_identifier,
    spark_of,
    telling,
)
from airmirror.cli.tables import BAD, DOUBTFUL, line, print_all, print_json
from airmirror.config.schedules import interval_seconds
from airmirror.flows.prepare import Prepared, prepare

if TYPE_CHECKING:  # every command would load them at its start
    from airmirror.flows.post_window import PostWindowTask
    from airmirror.on_spark.windows import RunWindow


@partial(flow_command, interrupted="interrupted: what is committed counts, and the next window resumes after it")
def run_window(
    given: FlowOptions,
    spark: Spark = DEFAULT_SPARK,
    local: Annotated[bool, typer.Option("--local", help="Run Spark in this process.")] = False,
    window: Annotated[str, typer.Option(help="The window's id; a new one by default.")] = "",
    follow: Annotated[
        str, typer.Option(help="Stay so long and copy what comes, as in `60s` or `5 min`; window.follow.ms by default.")
    ] = "",
    expectations: Expectations = None,
    no_expectations: Annotated[
        bool, typer.Option("--no-expectations", help="Judge by the engine's own checks alone; what is held stays held.")
    ] = False,
    offset_syncs: Annotated[bool, typer.Option(help="Write MirrorMaker 2's offset syncs after it.")] = True,
    checkpoints: Annotated[bool, typer.Option(help="Write checkpoints of consumer groups after it.")] = True,
    group_offsets: Annotated[bool, typer.Option(help="Move idle consumer groups on the target after it.")] = True,
) -> None:
    """Do what a run in Airflow does: replicate everything that is new, judge it, write offset syncs and checkpoints, move
    groups, as far as the configuration wants it. Exit status: 0 verified, 1 not, 2 bad input, 75 not yet: try again.
    """
    from airmirror.flows.gates import expectations_of
    from airmirror.flows.post_window import POST_WINDOW_TASKS, do_tasks
    from airmirror.on_spark.windows import run_judged
    from airmirror.windows.window import WindowOrder

    needs("pyspark")
    identifier = window or new_identifier()
    seconds = _seconds(follow)
    server = _server(given.config, spark, local)
    by = expectations_of(expectations_in(given.config, expectations), wanted=not no_expectations)
    if by.suites is None:
        Console(stderr=True).print(line("warning", f"judged by {by}", DOUBTFUL), soft_wrap=True)
    wanted = [
        name
        for name, is_wanted in zip(POST_WINDOW_TASKS, (offset_syncs, checkpoints, group_offsets), strict=True)
        if is_wanted
    ]
    with given.opened() as opened, telling(console, f"window {identifier}") as show_now:
        said = f"window {identifier}: "
        if seconds:
            staying = replace(opened.flow.window, follow_ms=seconds * 1000)
            opened = replace(opened, flow=replace(opened.flow, window=staying))
        prepared = prepare(opened, lambda phase: show_now(said + phase))
        order = WindowOrder(
            identifier,
            tell=lambda phase: show_now(said + phase),
            report=lambda progress: show_now(said + show.progress(progress)),
        )
        judged = run_judged(prepared, server, order, by, wanted)
        result = judged.result
        tasks = do_tasks(prepared.opened, wanted, identifier, order.tell)
    if given.as_json:
        shown = plain.window(result, prepared.refused, prepared.report)
        print_json(console, shown | {"judged_by": str(by)} | {"tasks": {each.name: each.said for each in tasks}})
    else:
        _show_window(prepared, judged, tasks)
    errors = [row.error for row in result.rows if row.failed and row.error is not None]
    for each in tasks:
        if each.error is not None:
            errors.append(each.error)
            Console(stderr=True).print(line(each.name, each.error, BAD), soft_wrap=True)
    if errors or not result.is_verified or prepared.refused:
        errors += prepared.report.errors
        raise typer.Exit(NOT_VERIFIED if prepared.is_refused_for_good else status_of_all(errors))


def _show_window(prepared: Prepared, judged: RunWindow, tasks: Sequence[PostWindowTask]) -> None:
    result = judged.result
    print_all(console, *prepared.report.lines, show.window(result), *show.followed(result))
    if judged.earlier:
        print_all(console, f"{judged.earlier:,} records that earlier windows had committed are verified now, too.")
    print_all(console, *show.problems(result, prepared.refused))
    print_all(console, *(f"{each.name}: {each.said}" for each in tasks if each.error is None))


def _server(config: Path, spark: str, local: bool) -> str | None:
    """Return the Spark Connect server to run on; None: this process. Raises typer.BadParameter."""
    if not local and not spark.startswith("sc://"):
        raise typer.BadParameter(
            f"--spark {spark}: a Spark Connect server is named like {DEFAULT_SPARK}; or say --local"
        )
    return None if local else spark_of(config, spark)


def _seconds(follow: str) -> int | None:
    """The seconds of ``--follow``; None: it was not given."""
    try:
        seconds = interval_seconds(follow)
    except ValueError as error:
        raise typer.BadParameter(f"--follow {follow}: {error}") from error
    if follow and seconds is None:
        raise typer.BadParameter(f"--follow {follow}: write a time with its unit, as in 60s or 5min")
    return seconds

"""The commands around a window: ``status``, ``plan``, ``topics``, ``run-window``, ``verify``."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from airmirror.cli import plain, show
from airmirror.cli.failures import NOT_VERIFIED, TRY_AGAIN, failures_reported, status_of_all
from airmirror.cli.options import (
    DEFAULT_CONFIG,
    DEFAULT_LEDGER,
    DEFAULT_SPARK,
    AsJson,
    Config,
    Expectations,
    FlowName,
    LedgerUrl,
    Secrets,
    Spark,
    console,
    expectations_in,
    loaded,
    opened_flow,
    spark_of,
)
from airmirror.cli.steps import telling
from airmirror.cli.tables import BAD, DOUBTFUL, line, print_json
from airmirror.cli.tables import show as print_all
from airmirror.config import ConfigurationError, Flow
from airmirror.config.schedules import interval_seconds
from airmirror.flows.prepare import Prepared, prepare

if TYPE_CHECKING:  # every command would load them at its start
    from airmirror.flows.rounds import Round
    from airmirror.on_spark.windows import RunWindow


@failures_reported
def plan(
    flow: FlowName = "",
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Show what the next window would do; nothing is written. Exit status 1: something needs a person."""
    from airmirror.flows.holds import sorted_holds
    from airmirror.flows.prepare import dry_run
    from airmirror.flows.status import needs_somebody, still_failing

    with opened_flow(config, flow, ledger, secrets, shows=True) as opened:
        topics, planned = dry_run(opened)
        held = sorted_holds(opened.ledger)
        failing = still_failing(opened.ledger)
    if as_json:
        print_json(console, plain.plan(topics, planned, failing))
    else:
        print_all(console, *show.plan(topics, planned, held, failing))
    if needs_somebody(topics.refused, planned, held, failing):
        raise typer.Exit(1)


@failures_reported
def topics(
    flow: FlowName = "",
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    plan_only: Annotated[bool, typer.Option("--plan", help="Only what the next window will do.")] = False,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Show what differs between topics and their remote topics, and why it will or will not be changed."""
    from airmirror.cli.topics import show_topics

    with opened_flow(config, flow, ledger, secrets, shows=True) as opened:
        show_topics(console, opened, plan_only, as_json)


@partial(failures_reported, interrupted="interrupted: what is committed counts, and the next window goes on after it")
def run_window(
    flow: FlowName = "",
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
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
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Do what a run in Airflow does: replicate everything that is new, judge it, write offset syncs and checkpoints, move
    groups, as far as the configuration wants it. Exit status: 0 verified, 1 not, 2 bad input, 75 not yet: try again.
    """
    from airmirror.flows.gates import expectations_of
    from airmirror.flows.rounds import ROUNDS
    from airmirror.flows.rounds import follow as do_rounds
    from airmirror.on_spark.windows import run_judged

    identifier = window or _identifier()
    seconds = _seconds(follow)
    server = _server(config, spark, local)
    by = expectations_of(expectations_in(config, expectations), wanted=not no_expectations)
    if by.suites is None:
        Console(stderr=True).print(line("warning", f"judged by {by}", DOUBTFUL), soft_wrap=True)
    wanted = [
        name for name, is_wanted in zip(ROUNDS, (offset_syncs, checkpoints, group_offsets), strict=True) if is_wanted
    ]
    with opened_flow(config, flow, ledger, secrets) as opened, telling(console, f"window {identifier}") as show_now:
        said = f"window {identifier}: "
        opened = replace(opened, flow=_staying(opened.flow, seconds))
        prepared = prepare(opened, lambda phase: show_now(said + phase))
        judged = run_judged(
            prepared,
            server,
            identifier,
            by,
            rounds=wanted,
            tell=lambda phase: show_now(said + phase),
            report=lambda progress: show_now(said + show.progress(progress)),
        )
        result = judged.result
        rounds = do_rounds(prepared.opened, wanted, identifier, lambda phase: show_now(said + phase))
    if as_json:
        shown = plain.window(result, prepared.refused, prepared.report)
        print_json(console, shown | {"judged_by": str(by)} | {"rounds": {each.name: each.said for each in rounds}})
    else:
        _show_window(prepared, judged, rounds)
    errors = [row.error for row in result.rows if row.failed and row.error is not None]
    for each in rounds:
        if each.error is not None:
            errors.append(each.error)
            Console(stderr=True).print(line(each.name, each.error, BAD), soft_wrap=True)
    if errors or not result.is_verified or prepared.refused:
        raise typer.Exit(NOT_VERIFIED if prepared.refused else status_of_all(errors))


def _show_window(prepared: Prepared, judged: RunWindow, rounds: Sequence[Round]) -> None:
    result = judged.result
    print_all(console, *prepared.report.lines, show.window(result), *show.followed(result))
    if judged.earlier:
        print_all(console, f"{judged.earlier:,} records that earlier windows had committed are verified now, too.")
    print_all(console, *show.problems(result, prepared.refused))
    print_all(console, *(f"{each.name}: {each.said}" for each in rounds if each.error is None))


@failures_reported
def verify(
    flow: FlowName = "",
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    topics: Annotated[str, typer.Option(help="Only these topics: names, separated by commas.")] = "",
    expectations: Expectations = None,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Read both logs again, compare every replicated record that both still hold, and judge again what is held."""
    from airmirror.flows.gates import expectations_of, judge_flow
    from airmirror.flows.verification import compare_all

    chosen = [name.strip() for name in topics.split(",") if name.strip()]
    by = expectations_of(expectations_in(config, expectations))
    with opened_flow(config, flow, ledger, secrets) as opened, console.status("comparing both logs"):
        rows = compare_all(opened, chosen)
        errors = []
        if rows:  # what differs elsewhere keeps no partition held
            errors = judge_flow(opened, by, window=f"verify-{_identifier()}")[0].errors
    if as_json:
        print_json(console, [row.as_dict() for row in rows])
    else:
        print_all(console, show.comparison(rows), *(line("held", error) for error in errors))
    if errors or any(row.error for row in rows):
        raise typer.Exit(1)


@failures_reported
def status(
    flow: Annotated[str, typer.Option("--flow", help="Only this flow; by default all that are enabled.")] = "",
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Show the enabled flows: their partitions, lag, verified offsets, holds, and the last windows. While a cluster does not
    answer, as the ledger last saw them. Exit status: 1 something needs a person, 75 a cluster does not answer.
    """
    from airmirror.flows.status import flow_status

    checked = loaded(config, secrets)
    if checked.problems:
        wrong = ConfigurationError(str(config), checked.problems)
        Console(stderr=True).print(line("error:", wrong), soft_wrap=True)
    configuration, found = checked.configuration, []
    for each in [configuration.flow(flow)] if flow else configuration.enabled:
        with opened_flow(config, each.name, ledger, secrets, shows=True) as opened:
            found.append(flow_status(opened))
    if as_json:
        print_json(console, [item.as_dict() for item in found])
    else:
        print_all(console, *(part for item in found for part in show.status(item)))
    if any(item.needs_somebody for item in found):
        raise typer.Exit(NOT_VERIFIED)
    if any(item.unreachable for item in found):
        raise typer.Exit(TRY_AGAIN)


def _server(config: Path, spark: str, local: bool) -> str | None:
    """Return the Spark Connect server to run on; None: this process. Raises typer.BadParameter."""
    if not local and not spark.startswith("sc://"):
        raise typer.BadParameter(
            f"--spark {spark}: a Spark Connect server is named like {DEFAULT_SPARK}; or say --local"
        )
    return None if local else spark_of(config, spark)


def _staying(flow: Flow, seconds: int | None) -> Flow:
    """The flow, whose windows follow for ``seconds`` where that was said."""
    return replace(flow, window=replace(flow.window, follow_ms=seconds * 1000)) if seconds else flow


def _seconds(follow: str) -> int | None:
    """The seconds of ``--follow``; None: it was not given."""
    try:
        seconds = interval_seconds(follow)
    except ValueError as error:
        raise typer.BadParameter(f"--follow {follow}: {error}") from error
    if follow and seconds is None:
        raise typer.BadParameter(f"--follow {follow}: write a time with its unit, as in 60s or 5min")
    return seconds


def _identifier() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:6]}"

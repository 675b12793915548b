"""One window as a Spark application: arguments in, exit status out. What it did is in the mapping topic, not in its output."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from airmirror.config import ConnectionNeeded, connections_of, properties
from airmirror.errors import AirmirrorError
from airmirror.flows.following import following_of
from airmirror.flows.gates import expectations_of
from airmirror.flows.post_window import POST_WINDOW_TASKS, do_tasks
from airmirror.flows.prepare import Opened, Prepared, open_flow, prepare
from airmirror.flows.selection import Selection
from airmirror.on_spark.clusters import with_clusters
from airmirror.on_spark.library import digest
from airmirror.on_spark.ranges import read_ranges, run_ranges
from airmirror.on_spark.windows import run, run_judged
from airmirror.windows.results import WindowResult
from airmirror.windows.window import WindowOrder

APPLICATION = Path(__file__).parents[1] / "spark_jobs" / "replicate_window.py"  # the file that spark-submit is given
DONE, FINAL, TRANSIENT = 0, 2, 75  # argparse ends with 2 too; EX_TEMPFAIL of sysexits.h; Python itself fails with 1
LEDGER = "AIRMIRROR_LEDGER"  # the environment's name for it, and the key in the file of secrets
CLUSTERS = "AIRMIRROR_CLUSTERS"  # in the file of secrets: what Airflow knows of them
EXPECTATIONS = "AIRMIRROR_EXPECTATIONS"
_TASK_FLAGS = ("offset_syncs", "checkpoints", "group_offsets")


def main(arguments: Sequence[str]) -> int:
    """Run a window on the Spark that this application was submitted to; DONE, or FINAL or TRANSIENT where something failed."""
    given = _parser().parse_args(arguments)
    selection = Selection(_list(given.topics), tuple(map(int, _list(given.partitions))), given.verify)
    secrets = properties.overrides(given.secrets)
    ledger = secrets.pop(LEDGER, "") or os.environ.get(LEDGER, "")
    clusters = secrets.pop(CLUSTERS, "")
    try:
        if not ledger:
            raise LedgerNotGiven()
        if given.library not in ("", own := digest()):
            raise OtherLibrary(own, given.library)
        with open_flow(given.config, given.flow, ledger, secrets) as opened:
            if clusters:
                opened = with_clusters(opened, clusters)
            else:
                _check_settings(opened)
            prepared = prepare(replace(opened, flow=selection.applied(opened.flow)))
            result = _window(given, prepared, selection)
            after = _flagged(given) if given.advance else []  # else another process continues
            tasks = do_tasks(prepared.opened, after, given.window, _tell)
    except AirmirrorError as error:
        _say(error)
        return TRANSIENT if error.transient else FINAL
    _tell_result(result)
    errors = [row.error for row in result.rows if row.error is not None and row.failed]
    errors += [each.error for each in tasks if each.error is not None]
    for each in (*errors, *prepared.refused):
        _say(each)
    if prepared.is_refused_for_good or any(not error.transient for error in errors):
        return FINAL
    return TRANSIENT if errors or prepared.refused else DONE


def _window(given: argparse.Namespace, prepared: Prepared, selection: Selection) -> WindowResult:
    order = WindowOrder(given.window, only=selection.takes, tell=_tell, report=lambda done: _tell(done.summary))
    if given.ranges is not None:
        return run_ranges(prepared, None, order, read_ranges(given.ranges), before=given.before, done=_tell_result)
    by = expectations_of(given.expectations, wanted=not given.no_expectations)
    _say(f"the gate: {by}")
    if given.advance:
        return run_judged(prepared, None, order, by, _flagged(given)).result
    # The gate that judges last must be the one that judges meanwhile: Airflow's, where it has named it.
    known = given.expectations is not None and by.suites is not None
    following = following_of(prepared.opened, by, window=given.window, tasks=_flagged(given)) if known else None
    return run(prepared, None, replace(order, following=following, advance=False))


def _flagged(given: argparse.Namespace) -> list[str]:
    """The tasks that are not switched off."""
    return [name for name, flag in zip(POST_WINDOW_TASKS, _TASK_FLAGS, strict=True) if getattr(given, flag)]


def _check_settings(opened: Opened) -> None:
    """Nothing of Airflow is here: what its connections hold comes by --secrets. Raises ConnectionNeeded."""
    connections = connections_of(opened.configuration)
    for cluster in (opened.flow.source, opened.flow.target):
        if cluster.alias in connections:
            raise ConnectionNeeded(cluster.alias, connections[cluster.alias])


class LedgerNotGiven(AirmirrorError):
    """A job without the ledger's URL."""

    says = f"the ledger's URL is missing: set {LEDGER} in the environment, or in the file given by --secrets"


class OtherLibrary(AirmirrorError):
    """A driver in an image whose Airmirror is not Airflow's."""

    says = (
        "the driver's image has another Airmirror ({0.own}) than Airflow, which submits ({0.wanted}): build both "
        "images from one checkout, and name the driver's as spark.kubernetes.driver.container.image"
    )
    own: str
    wanted: str


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="replicate_window.py", description=main.__doc__)
    parser.add_argument("--config", type=Path, required=True, help="the configuration, MirrorMaker 2's properties file")
    parser.add_argument("--flow", required=True, help="source->target")
    parser.add_argument("--window", required=True, help="the window's id, made by whoever submits")
    parser.add_argument("--secrets", type=Path, help=f"properties that override the configuration's; {LEDGER} too")
    parser.add_argument(
        "--library", default="", help="the digest of the library that the submitter has: no other is run"
    )
    parser.add_argument("--topics", default="", help="only these topics of the source, separated by commas")
    parser.add_argument("--partitions", default="", help="only these partition numbers, separated by commas")
    parser.add_argument("--verify", choices=("readback", "acks"), help="as configured by default")
    parser.add_argument(
        "--no-advance",
        dest="advance",
        action="store_false",
        help="leave the judgement to another process (Airflow's gate)",
    )
    parser.add_argument(
        "--expectations",
        type=Path,
        default=Path(os.environ[EXPECTATIONS]) if os.environ.get(EXPECTATIONS) else None,
        help=f"a directory of expectations of your own; {EXPECTATIONS} by default",
    )
    parser.add_argument(
        "--no-expectations", action="store_true", help="judge by the engine's own checks alone; what is held stays held"
    )
    parser.add_argument(
        "--ranges",
        type=Path,
        help="only up to the ends of these ranges, in as many windows as it takes (Airflow's audits)",
    )
    parser.add_argument(
        "--before", action="store_true", help="with --ranges: also what lies before the first replicated offset"
    )
    for name, flag in zip(POST_WINDOW_TASKS, _TASK_FLAGS, strict=True):
        option = f"--no-{flag.replace('_', '-')}"
        parser.add_argument(option, dest=flag, action="store_false", help=f"do not do what the task {name} does")
    return parser


def _list(given: str) -> tuple[str, ...]:
    return tuple(part for part in map(str.strip, given.split(",")) if part)


def _say(what: object) -> None:
    """Each line for itself: Airflow's task shows those that begin so, among Spark's."""
    for line in str(what).splitlines():
        print(f"airmirror: {line}", flush=True)


def _tell(phase: str) -> None:
    _say(f"now: {phase}")


def _tell_result(result: WindowResult) -> None:
    cut = ", cut" if result.is_cut else ""
    copied = f"{result.copied:,} records, {result.bytes / 1e6:.1f} MB of {len(result.rows)} partitions"
    _say(f"window {result.window}: {copied} in {result.seconds:.1f} s{cut}")

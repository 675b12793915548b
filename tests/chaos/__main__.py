"""``python -m chaos --seed 7 --minutes 5``: seeds from the given one on, until the minutes are over; status 1 if one failed."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from chaos.clusters import start_clusters
from chaos.plan import make_plan
from chaos.procedures import ProcedureReport, run_procedure
from chaos.results import keep, write, write_procedures
from chaos.results import kept as kept_of
from chaos.run import Report, run_seed
from chaos.stories import ProcedurePlan, make_procedure_plan
from support.sides import own_sides


class What(StrEnum):
    """What is run: windows, or procedures."""

    WINDOWS = "windows"
    PROCEDURES = "procedures"


@dataclass(frozen=True)
class Runs:
    """How seeds are run: on which clusters, by which plan, and how what became of them is written down."""

    start: Callable[[Path], AbstractContextManager[Any]]
    plan: Callable[[int], Any]
    run: Callable[[Any, Any, Path, Callable[[str], None]], Report]
    write: Callable[[Path, Any], None]


def main(
    seed: Annotated[int, typer.Option(help="The first seed.")] = 1,
    minutes: Annotated[float, typer.Option(help="No further seed is begun after so many minutes.")] = 1.0,
    last: Annotated[int | None, typer.Option(help="The last seed.")] = None,
    seconds: Annotated[float, typer.Option(help="How long faults happen in each seed.")] = 20.0,
    only: Annotated[What, typer.Option(help="What is run among faults.")] = What.WINDOWS,
    results: Annotated[Path | None, typer.Option(help="A Markdown file for what became of each seed.")] = None,
    kept: Annotated[Path | None, typer.Option(help="Of procedures: a file to which seeds that ran are added.")] = None,
) -> None:
    """Run seeds one after the other on the same clusters; new ones after a seed that failed."""
    directory = Path(tempfile.mkdtemp(prefix="chaos-"))
    until = time.monotonic() + minutes * 60
    ran: list[tuple[Any, Report]] = []
    runs = Runs(start_clusters, partial(make_plan, seconds=seconds), run_seed, write)
    if only is What.PROCEDURES:
        runs = Runs(own_sides, make_procedure_plan, run_procedure, partial(_write_procedures, kept))
    number = seed
    while number == seed or (time.monotonic() < until and (last is None or number <= last)):
        home = directory / f"clusters-{number}"
        home.mkdir()
        with runs.start(home) as clusters:
            while number == seed or (time.monotonic() < until and (last is None or number <= last)):
                plan = runs.plan(number)
                print(plan, flush=True)
                report = runs.run(plan, clusters, directory / f"seed-{number}", _tell)
                ran.append((plan, report))
                if results is not None:
                    runs.write(results, ran)
                number += 1
                if report.failures:
                    break
    failed = [report.seed for _, report in ran if report.failures]
    print(f"{len(ran) - len(failed)} of {len(ran)} seeds passed" + (f"; failed: {failed}" if failed else ""))
    if failed:
        print(f"what they left: {directory}")
        sys.exit(1)
    shutil.rmtree(directory)


def _write_procedures(file: Path | None, page: Path, ran: Sequence[tuple[ProcedurePlan, ProcedureReport]]) -> None:
    """Add the newest seed to those that are kept, and write all of them."""
    if file is None:
        raise typer.BadParameter("--results of procedures needs --kept")
    keep(file, ran[-1][1])
    write_procedures(page, kept_of(file))


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    typer.run(main)

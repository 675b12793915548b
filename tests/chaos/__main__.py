"""``python -m chaos --seed 7 --minutes 5``: seeds from the given one on, until the minutes are over; status 1 if one failed."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from chaos.clusters import start_clusters
from chaos.plan import Plan, make_plan
from chaos.results import write
from chaos.run import Report, run_seed


def main(
    seed: Annotated[int, typer.Option(help="The first seed.")] = 1,
    minutes: Annotated[float, typer.Option(help="No further seed is begun after so many minutes.")] = 1.0,
    last: Annotated[int | None, typer.Option(help="The last seed.")] = None,
    seconds: Annotated[float, typer.Option(help="How long faults happen in each seed.")] = 20.0,
    results: Annotated[Path | None, typer.Option(help="A Markdown file for what became of each seed.")] = None,
) -> None:
    """Run seeds one after the other on the same clusters; new ones after a seed that failed."""
    directory = Path(tempfile.mkdtemp(prefix="chaos-"))
    until = time.monotonic() + minutes * 60
    ran: list[tuple[Plan, Report]] = []
    number = seed
    while number == seed or (time.monotonic() < until and (last is None or number <= last)):
        home = directory / f"clusters-{number}"
        home.mkdir()
        with start_clusters(home) as clusters:
            while number == seed or (time.monotonic() < until and (last is None or number <= last)):
                plan = make_plan(number, seconds)
                print(plan, flush=True)
                report = run_seed(plan, clusters, directory / f"seed-{number}", _tell)
                ran.append((plan, report))
                if results is not None:
                    write(results, ran)
                number += 1
                if report.failures:
                    break
    failed = [report.seed for _, report in ran if report.failures]
    print(f"{len(ran) - len(failed)} of {len(ran)} seeds passed" + (f"; failed: {failed}" if failed else ""))
    if failed:
        print(f"what they left: {directory}")
        sys.exit(1)
    shutil.rmtree(directory)


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    typer.run(main)

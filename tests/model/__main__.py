"""``python -m model``: explore everything, name the states, and find again what was found before. Status 1 if not."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from model.page import page, row
from model.tasks import PARTS, take, tasks

PAGE = Path(__file__).resolve().parents[2] / "benchmarks" / "MODEL.md"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m model", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only what make test explores")
    parser.add_argument("--procedures", action="store_true", help="only procedures that meet")
    parser.add_argument("--most", type=int, default=3_000_000, help="states of a scope, at most")
    parser.add_argument("--page", action="store_true", help="write benchmarks/MODEL.md")
    chosen = parser.parse_args()
    failed, partly, rows = 0, list[str](), dict[str, str]()
    spawn = multiprocessing.get_context("spawn")  # each scope in a process of its own: its memory is given back
    with ProcessPoolExecutor(2, mp_context=spawn, max_tasks_per_child=1) as pool:
        todo = tasks(quick=chosen.quick, windows=not chosen.procedures, most=chosen.most)
        for task, (found, expected) in zip(todo, pool.map(take, todo), strict=True):
            failed += not found.wrong.startswith(expected) if expected else bool(found.wrong)
            print(f"put back: {task.name}\n{found}\n" if task.is_fault else str(found), flush=True)
            rows[task.name] = row(task.name, found, is_fault=task.is_fault)
            partly += [] if found.whole or task.is_fault else [task.name]
    if partly:
        print(f"not all states were explored of: {'; '.join(partly)} (--most is {chosen.most:,})")
    if chosen.page:
        PAGE.write_text(page(PARTS, rows, PAGE.read_text() if PAGE.exists() else ""))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

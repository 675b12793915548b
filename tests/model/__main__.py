"""``python -m model``: explore everything, name the states, and find again what was found before. Status 1 if not."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from model import procedure_scopes, scopes
from model.explore import Explored
from model.page import page, row

PAGE = Path(__file__).resolve().parents[2] / "benchmarks" / "MODEL.md"
PARTS = {
    "Windows": ([each.name for each in scopes.DEEP], list(scopes.BROKEN)),
    "Procedures that meet": ([each.name for each in procedure_scopes.DEEP], list(procedure_scopes.BROKEN)),
}


@dataclass(frozen=True)
class Task:
    """A scope by its name, or a fault that is put back; of the protocol of windows, or of procedures."""

    of_procedures: bool
    name: str
    is_fault: bool = False
    most: int = 10_000_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m model", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only what make test explores")
    parser.add_argument("--procedures", action="store_true", help="only procedures that meet")
    parser.add_argument("--most", type=int, default=3_000_000, help="states of a scope, at most")
    parser.add_argument("--page", action="store_true", help="write benchmarks/MODEL.md")
    chosen = parser.parse_args()
    failed, rows = 0, dict[str, str]()
    spawn = multiprocessing.get_context("spawn")  # each scope in a process of its own: its memory is given back
    with ProcessPoolExecutor(2, mp_context=spawn, max_tasks_per_child=1) as pool:
        todo = tasks(quick=chosen.quick, windows=not chosen.procedures, most=chosen.most)
        for task, (found, expected) in zip(todo, pool.map(take, todo), strict=True):
            failed += not found.wrong.startswith(expected) if expected else bool(found.wrong)
            print(f"put back: {task.name}\n{found}\n" if task.is_fault else str(found), flush=True)
            rows[task.name] = row(task.name, found, is_fault=task.is_fault)
    if chosen.page:
        PAGE.write_text(page(PARTS, rows, PAGE.read_text() if PAGE.exists() else ""))
    sys.exit(1 if failed else 0)


def tasks(*, quick: bool, windows: bool, most: int) -> list[Task]:
    """All that is explored, the largest scopes of windows first."""
    found = []
    if windows:
        found += [Task(False, scope.name, most=most) for scope in reversed(scopes.QUICK if quick else scopes.DEEP)]
        found += [Task(False, name, True, most) for name in scopes.BROKEN]
    meetings = procedure_scopes.QUICK if quick else procedure_scopes.DEEP
    found += [Task(True, each.name, most=most) for each in meetings]
    return found + [Task(True, name, True, most) for name in procedure_scopes.BROKEN]


def take(task: Task) -> tuple[Explored, str]:
    """Explore; how what is wrong is to begin, empty: nothing is to be wrong."""
    if task.of_procedures and task.is_fault:
        fault = procedure_scopes.BROKEN[task.name]
        return procedure_scopes.explored(fault.meeting, fault.rules, task.most), fault.wrong
    if task.of_procedures:
        meeting = next(each for each in procedure_scopes.DEEP if each.name == task.name)
        return procedure_scopes.explored(meeting, procedure_scopes.MEANT, task.most), ""
    if task.is_fault:
        scope, rules, wrong = scopes.BROKEN[task.name]
        return scopes.explored(scope, rules, task.most), wrong
    scope = next(each for each in scopes.DEEP if each.name == task.name)
    return scopes.explored(scope, scopes.RULES, task.most), ""


if __name__ == "__main__":
    main()

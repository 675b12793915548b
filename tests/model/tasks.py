"""All that is explored, each by its name: what a process is given that explores a part of it."""

from __future__ import annotations

from dataclasses import dataclass

from model import procedure_scopes, scopes
from model.explore import Explored

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

"""The results file: every seed with what it went through, as a Markdown table."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from chaos.faults import Happened
from chaos.plan import FLAGS, Plan
from chaos.procedures import ProcedureReport
from chaos.run import Report
from chaos.stories import KINDS, PLACES, STORIES

HEAD = """# The chaos test: seeds that ran

What a seed is, and what is checked after it: [docs/chaos.md](../docs/chaos.md). `PYTHONPATH=tests .venv/bin/python -m chaos
--seed 101 --last 200 --seconds 6 --minutes 600 --results benchmarks/CHAOS.md` writes this page.

"""
PROCEDURES = """## Procedures

What a seed of procedures is, what is checked, and how this section is written: [docs/chaos.md](../docs/chaos.md#procedures).

"""
GIT = ("git", "describe", "--always", "--dirty", "--exclude", "*")


@dataclass(frozen=True)
class Kept:
    """A run of a seed of procedures, and at which commit, on which day."""

    commit: str
    day: str
    report: ProcedureReport


def write(file: Path, ran: Sequence[tuple[Plan, Report]]) -> None:
    """Write the table, and the sums above it."""
    passed = sum(not report.failures for _, report in ran)
    happened = Counter(fault.kind for _, report in ran for fault in report.happened)
    missed = sum(len(report.missed) for _, report in ran)
    seconds = ran[0][0].seconds
    lines = [
        f"{passed} of {len(ran)} seeds passed, with faults for {seconds:g} s in each: "
        f"{sum(report.records for _, report in ran):,} records equal, {sum(report.windows for _, report in ran):,} windows, "
        f"of which {sum(report.killed for _, report in ran)} were killed, {sum(happened.values())} faults that happened: "
        + ", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in happened.most_common())
        + f". {missed} more were planned and found nothing to befall.",
        "",
        "| seed | clusters | slots | faults that happened | windows (killed) | errors of windows | records equal | s | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for plan, report in ran:
        clusters = "3 nodes → 1" if plan.three == "source" else "1 node → 3"
        slots = "Spark" if plan.spark else str(plan.slots)
        clusters += "".join(f", {name.replace('_', ' ')}" for name in FLAGS if getattr(plan, name))
        faults = Counter(fault.kind.replace("_", " ") for fault in report.happened)
        told = ", ".join(kind if count == 1 else f"{kind} ×{count}" for kind, count in sorted(faults.items()))
        errors = ", ".join(f"{name} {count}" for name, count in sorted(report.errors.items()))
        state = "FAILED" if report.failures else "passed"
        lines.append(
            f"| {plan.seed} | {clusters} | {slots} | {told} | {report.windows} ({report.killed}) | {errors} | "
            f"{report.records:,} | {report.seconds:.0f} | {state} |"
        )
    procedures = "".join(file.read_text().partition(PROCEDURES)[1:]) if file.exists() else ""
    file.write_text(HEAD + "\n".join(lines) + "\n" + (procedures and "\n" + procedures))


def keep(file: Path, report: ProcedureReport) -> None:
    """Append what became of a seed to a file of runs, of which several may be under way."""
    commit = subprocess.run(GIT, check=True, capture_output=True, text=True, cwd=Path(__file__).parent).stdout.strip()
    line = {"commit": commit, "day": date.today().isoformat(), **asdict(report)}
    with file.open("a") as opened:
        opened.write(json.dumps(line) + "\n")


def kept(file: Path) -> list[Kept]:
    """All runs of seeds that were kept, in order."""
    found = []
    for line in file.read_text().splitlines():
        its = json.loads(line)
        commit, day = its.pop("commit"), its.pop("day")
        its |= {name: [Happened(**each) for each in its[name]] for name in ("happened", "missed")}
        found.append(Kept(commit, day, ProcedureReport(**its)))
    return found


def write_procedures(file: Path, runs: Sequence[Kept]) -> None:
    """Write the section of procedures: the last run of each seed, and which failed before."""
    last = {each.report.seed: each for each in runs}
    reports = [last[seed].report for seed in sorted(last)]
    failed = [each for each in runs if each.report.failures]
    happened = Counter(fault.kind for report in reports for fault in report.happened)
    missed = sum(len(report.missed) for report in reports)
    seconds = [report.seconds for report in reports]
    commits = Counter(each.commit for each in last.values())
    errors = Counter[str]()
    for report in reports:
        errors.update(report.errors)
    kinds = [kind for kind in KINDS if happened[kind]]
    lines = [
        f"{sum(not each.failures for each in reports)} of {len(reports)} seeds passed (seeds {_ranges(sorted(last))}; "
        + ", ".join(f"{count} at commit {commit}" for commit, count in commits.items())
        + f", until {max(each.day for each in runs)}): {sum(each.commands for each in reports):,} commands, of which "
        f"{sum(each.killed for each in reports)} were killed or ended, {sum(happened.values())} faults that happened; "
        f"{missed} more were planned and found nothing to befall. A seed took {sum(seconds) / len(seconds):.0f} s, the longest "
        f"{max(seconds):.0f} s.",
        "",
        f"| procedure | passed | {' | '.join(map(_words, kinds))} | commands (killed) | records |",
        "|---|---|" + "---|" * len(kinds) + "---|---|",
    ]
    for name in [each for each in STORIES if any(report.name == each for report in reports)]:
        its = [report for report in reports if report.name == name]
        faults = Counter(fault.kind for report in its for fault in report.happened)
        commands, killed, records = (
            sum(getattr(each, what) for each in its) for what in ("commands", "killed", "records")
        )
        lines.append(
            f"| {name} | {sum(not each.failures for each in its)} of {len(its)} | "
            f"{' | '.join(str(faults[kind]) for kind in kinds)} | {commands} ({killed}) | {records:,} |"
        )
    sums = " | ".join(str(happened[kind]) for kind in kinds)
    lines += [
        f"| all | {sum(not each.failures for each in reports)} of {len(reports)} | {sums} | "
        f"{sum(each.commands for each in reports)} ({sum(each.killed for each in reports)}) | "
        f"{sum(each.records for each in reports):,} |",
        "",
        *_by_step(reports, kinds),
        "",
        f"Errors with which commands ended among faults: {_counts(errors)}.",
    ]
    if failed:
        lines += ["", "Runs that failed:", "", "| seed | at commit | what failed | since |", "|---|---|---|---|"]
    for each in failed:
        now = last[each.report.seed]
        since = "fails" if now.report.failures else f"passed at commit {now.commit}"
        what = " ".join(each.report.failures[0].split()).replace("|", "\\|")
        lines.append(f"| {each.report.seed}, {each.report.name} | {each.commit} | {what[:200]} | {since} |")
    page = file.read_text()
    file.write_text(page.partition(PROCEDURES)[0].rstrip("\n") + "\n\n" + PROCEDURES + "\n".join(lines) + "\n")


def _by_step(reports: Sequence[ProcedureReport], kinds: Sequence[str]) -> list[str]:
    """The table of faults by their kind and the step in which they happened, of every step of every runbook."""
    places = {each: Counter[str]() for each in PLACES}
    for report in reports:
        for place, its in report.places.items():
            places.setdefault(place, Counter()).update(its)
    rows = [
        f"| {place} | {' | '.join(str(its[kind]) for kind in kinds)} | {its.total()} |" for place, its in places.items()
    ]
    return [f"| at the step | {' | '.join(map(_words, kinds))} | all |", "|---|" + "---|" * (len(kinds) + 1), *rows]


def _words(kind: str) -> str:
    return kind.replace("_", " ")


def _counts(found: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(found.items())) or "none"


def _ranges(seeds: Sequence[int]) -> str:
    """Numbers as ranges, as in 0–9, 12."""
    found: list[list[int]] = []
    for seed in seeds:
        if found and seed == found[-1][-1] + 1:
            found[-1].append(seed)
        else:
            found.append([seed])
    return ", ".join(f"{each[0]}–{each[-1]}" if len(each) > 1 else str(each[0]) for each in found)

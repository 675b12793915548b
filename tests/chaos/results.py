"""The results file: every seed with what it went through, as a Markdown table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from chaos.plan import FLAGS, Plan
from chaos.procedures import ProcedureReport
from chaos.run import Report
from chaos.stories import Doing, ProcedurePlan

HEAD = """# The chaos test: seeds that ran

What a seed is, and what is checked after it: [docs/chaos.md](../docs/chaos.md). `PYTHONPATH=tests .venv/bin/python -m chaos
--seed 101 --last 200 --seconds 6 --minutes 600 --results benchmarks/CHAOS.md` writes this page.

"""


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
    file.write_text(HEAD + "\n".join(lines) + "\n")


def write_procedures(file: Path, ran: Sequence[tuple[ProcedurePlan, ProcedureReport]]) -> None:
    """Write how often each procedure's seeds passed, and which faults they met."""
    reports = [report for _, report in ran]
    happened = Counter(fault.kind for report in reports for fault in report.happened)
    lines = [
        f"{sum(not each.failures for each in reports)} of {len(ran)} seeds passed: {sum(each.commands for each in reports):,} "
        f"commands, of which {sum(each.killed for each in reports)} were killed, {sum(happened.values())} faults that happened: "
        + ", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in happened.most_common())
        + f". {sum(len(each.missed) for each in reports)} more were planned and found nothing to befall.",
        "",
        "| procedure | passed | steps with faults | commands (killed) | errors of commands | records |",
        "|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(plan.name for plan, _ in ran):
        its = [(plan, report) for plan, report in ran if plan.name == name]
        steps, errors = Counter[str](), Counter[str]()
        for plan, report in its:
            for hit in plan.hits:
                act = plan.acts[hit.doing]
                assert isinstance(act, Doing)
                steps[f"{act.book} {act.steps[hit.step]}"] += 1
            errors.update(report.errors)
        commands, killed = (sum(getattr(report, what) for _, report in its) for what in ("commands", "killed"))
        lines.append(
            f"| {name} | {sum(not report.failures for _, report in its)} of {len(its)} | {_counts(steps)} | "
            f"{commands} ({killed}) | {_counts(errors)} | {sum(report.records for _, report in its):,} |"
        )
    failed = [str(report) for report in reports if report.failures]
    file.write_text("\n".join([*lines, *failed]) + "\n")


def _counts(found: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(found.items()))

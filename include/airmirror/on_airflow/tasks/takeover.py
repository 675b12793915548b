"""The work of the tasks that ask whether to take over from MirrorMaker 2, and do it. Loaded in tasks only."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from airmirror.errors import AirmirrorError, counted, listed
from airmirror.flows.selection import Selection
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.question import Question
from airmirror.on_airflow.tasks.telling import phase
from airmirror.on_airflow.tasks.window import opened_flow, when_free
from airmirror.report.markdown import escape
from airmirror.runbooks.takeover.copies import take_over_copies
from airmirror.runbooks.takeover.plan import TakeoverPlan, takeover_plan
from airmirror.runbooks.takeover.stop import await_stopped

log = logging.getLogger(__name__)

MOST_SHOWN = 100  # partitions, groups and incidents of one question


@dataclass(eq=False)
class NotTakenOver(AirmirrorError):
    """Partitions that could not be taken over; the others are."""

    flow: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"flow {self.flow!r}: {counted(len(self.reasons), 'partition')} can't be taken over\n{listed(self.reasons)}"
        )


def ask(deployment: Deployment, flow: str) -> Question:
    """Return the question: what a take-over would do now. Writes only the ledger. Raises a cluster's error."""
    with opened_flow(deployment, flow, Selection()) as opened:
        found = takeover_plan(opened)
    wrong = [row for row in found.partitions if row.error is not None]
    for row in wrong:
        log.warning("%s", row.error)
    goes_on = counted(len(found.partitions) - len(wrong), "partition")
    subject = f"{flow}: take over from MirrorMaker 2? {goes_on} can go on, {len(wrong)} can't"
    return Question(subject, question(found))


def question(found: TakeoverPlan) -> str:
    """Return the plan as Markdown. Every text that is not ours is escaped."""
    rows = [row for row in found.partitions if row.copied or row.again or row.error is not None] or found.partitions[:1]
    lines = [
        "Nothing is written yet. **Approve, then stop MirrorMaker 2**; nothing is taken over before it is stopped.",
        "",
    ]
    lines += [f"- running: {escape(each)}" for each in found.running] or ["- none of its workers is seen on the target"]
    lines += ["", "| topic | partition | MirrorMaker 2's last | continues at | recognised | twice | wrong |"]
    lines.append("|---|---|---|---|---|---|---|")
    for row in rows[:MOST_SHOWN]:
        numbers = f"{row.recorded:,} | {row.start:,} | {row.copied:,} | {row.again:,}"
        lines.append(f"| {escape(row.topic)} | {row.partition} | {numbers} | {escape(str(row.error or ''))} |")
    lines.append(
        f"\n{len(found.partitions):,} partitions in all; the others continue after MirrorMaker 2's progress.\n"
    )
    told = [(key, incident) for key, its in sorted(found.histories.items()) for incident in its]
    lines += [f"- {escape(str(key))}: {escape(incident.what)}" for key, incident in told[:MOST_SHOWN]]
    estimated = [each for each in found.groups if not each.exact]
    lines.append(f"\n{len(found.groups) - len(estimated)} positions of groups will be exact, {len(estimated)} not.\n")
    lines += [
        f"- {escape(each.group)}, {escape(each.topic)}-{each.partition}: {escape(each.why)}"
        for each in estimated[:MOST_SHOWN]
    ]
    return "\n".join(lines)


def take_over(deployment: Deployment, flow: str, window: str, by: str, seconds: float, selection: Selection) -> None:
    """Wait until MirrorMaker 2 is stopped, then take over. Raises MirrorMakerRuns, NotTakenOver, or a cluster's error."""
    with opened_flow(deployment, flow, selection) as opened:
        await_stopped(opened, seconds, tell=phase)
        rows = when_free(opened.flow, lambda: take_over_copies(opened, by, window, phase))
    for row in rows:
        twice = f", {row.again:,} of its copies are there twice" if row.again else ""
        if row.error is None:
            log.info(
                "%s-%d continues at %d, after %d records taken over%s.",
                row.topic,
                row.partition,
                row.start,
                row.copied,
                twice,
            )
    if errors := tuple(str(row.error) for row in rows if row.error is not None):
        raise NotTakenOver(flow, errors)

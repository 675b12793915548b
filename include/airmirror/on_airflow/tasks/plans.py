"""A plan in Airflow: findings in the log and in a question, and the report of what was carried out. Loaded in tasks only."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from airmirror.failover.findings import Finding
from airmirror.flows.moving import PutBack
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.question import escape
from airmirror.quality.page import PAGES_KEPT, file_name, keep_newest

log = logging.getLogger(__name__)

MOST_SHOWN = 100  # partitions, or positions of groups, of one question


def log_findings(findings: Iterable[Finding]) -> None:
    """Tell each finding in the task's log."""
    for each in findings:
        log.info("%s: %s: %s %s", each.level, each.what, each.evidence, each.way_out)


def finding_lines(findings: Iterable[Finding]) -> list[str]:
    """Return each finding as a line of Markdown. Every text that is not ours is escaped."""
    return [
        f"- **{each.level}** {escape(each.what)}: {escape(each.evidence)}"
        + (f" ({escape(each.way_out)})" if each.way_out else "")
        for each in findings
    ]


def put_back_lines(groups: Sequence[PutBack]) -> list[str]:
    """Return a table of the positions that an undo puts back, as Markdown. Every text that is not ours is escaped."""
    lines = ["", "| group | topic | stands at | goes back to |", "|---|---|---|---|"]
    for each in groups[:MOST_SHOWN]:
        back = "no position" if each.move.before < 0 else f"{each.move.before:,}"
        topic = f"{escape(each.move.topic)}-{each.move.partition}"
        lines.append(f"| {escape(each.move.group)} | {topic} | {each.now:,} | {back} |")
    return [*lines, f"\n{len(groups):,} positions in all."]


def keep_report(
    deployment: Deployment,
    kind: str,
    flow: str,
    run: str,
    write: Callable[[Path], Path],
    show: Callable[[Path], None],
) -> None:
    """Write a run's report among those of its ``kind``, of which the newest are kept; ``show`` hears of its page.

    ``write`` is given the path without its ending, and returns the page. Raises what it does.
    """
    directory = deployment.data_docs / kind / flow.replace("->", ".")
    show(write(directory / file_name(run).removesuffix(".html")))
    keep_newest(directory, PAGES_KEPT)

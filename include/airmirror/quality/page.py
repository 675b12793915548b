"""Data Docs: one self-contained HTML page a verdict. Everything on it is escaped; it has no script and needs no other host."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from airmirror.quality.rows import COLUMNS, Row, partition_of
from airmirror.quality.verdict import Validation
from airmirror.report.html import document, table

MOST_ROWS = 200


def verdict_page(rows: Sequence[Row], validation: Validation, *, flow: str, window: str) -> str:
    """The page: what failed, what was asked, the rows."""
    failed = validation.failed
    said = f"{len(failed)} of {len(rows)} partitions did not pass" if failed else f"all {len(rows)} partitions passed"
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    parts = [f"<p>Judged in {html.escape(window)}, {now}.</p>"]
    if failed:
        reasons = [(topic, number, reason) for (topic, number), found in sorted(failed.items()) for reason in found]
        parts += ["<h2>What did not pass</h2>", table(("topic", "partition", "why"), reasons[:MOST_ROWS])]
        parts.append(_more(len(reasons)))
    if validation.warnings:
        parts += ["<h2>Warnings</h2>", table(("warning",), [(warning,) for warning in validation.warnings[:MOST_ROWS]])]
    parts += ["<h2>What was asked</h2>", _asked(validation)]
    legend = "The columns are explained in docs/expectations.md; those that did not pass come first."
    parts += [f"<h2>Partitions</h2><p>{legend}</p>", _rows(rows, validation), _more(len(rows))]
    return document(f"{flow}: {said}", "".join(parts), "bad" if failed else "good")


def _asked(validation: Validation) -> str:
    lines, marks = [], []
    for asked in validation.asked:
        met = "met" if not asked.failed else f"not met by {len(asked.failed)}"
        lines.append(
            (asked.suite, asked.expectation.notes, asked.text, asked.expectation.severity, asked.partitions, met)
        )
        marks.append("" if not asked.failed else "bad" if asked.is_critical else "warned")
    return table(("suite", "notes", "expectation", "severity", "partitions", "result"), lines, marks)


def _rows(rows: Sequence[Row], validation: Validation) -> str:
    ordered = sorted(rows, key=lambda row: (partition_of(row) not in validation.failed, partition_of(row)))[:MOST_ROWS]
    marks = ["bad" if partition_of(row) in validation.failed else "" for row in ordered]
    return table(tuple(COLUMNS), [tuple(_value(row, name) for name in COLUMNS) for row in ordered], marks)


def _value(row: Mapping[str, object], name: str) -> object:
    value = row.get(name)
    return "" if name == "error" and value is None else "not measured" if value is None else value


def _more(count: int) -> str:
    return f"<p>… and {count - MOST_ROWS} more</p>" if count > MOST_ROWS else ""

"""Data Docs: one self-contained HTML page a verdict. Everything on it is escaped; it has no script and needs no other host."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from airmirror.quality.rows import COLUMNS, Row, partition_of
from airmirror.quality.verdict import Judgement

PAGES_KEPT = 200  # of a flow, one a validation; some kilobytes each
MOST_ROWS = 200
MOST_TEXT = 2_000  # of a cell
_STYLE = """
body{font-family:system-ui,sans-serif;margin:2em;color:#1b1f24}
h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}
table{border-collapse:collapse;font-size:.9em}
td,th{padding:4px 10px;border-bottom:1px solid #d8dee4;text-align:left;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}tr.bad td{background:#fff1f0}tr.warned td{background:#fff8e1}
.bad h1{color:#b42318}.good h1{color:#067647}div.wide{overflow-x:auto}
"""


def document(title: str, body: str, kind: str = "") -> str:
    """A whole page. ``body`` is HTML already; ``kind`` is a class of it."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>"
        f'<body class="{html.escape(kind)}"><h1>{html.escape(title)}</h1>{body}</body></html>'
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], marks: Sequence[str] = ()) -> str:
    """Cells as HTML, escaped and bounded; ``marks``: a class for each of the first rows, empty for none."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    lines = []
    for number, row in enumerate(rows):
        mark = marks[number] if number < len(marks) else ""
        lines.append(f'<tr class="{mark}">{"".join(map(_cell, row))}</tr>')
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(lines)}</table></div>'


def file_name(name: str) -> str:
    """A name for a page of what is called ``name``."""
    return f"{re.sub(r'[^A-Za-z0-9_.+-]', '-', name)}.html"


def keep_newest(directory: Path, most: int) -> None:
    """Remove the oldest pages of a directory; directories are sites of earlier versions."""
    pages = sorted(directory.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in pages[most:]:
        if old.is_dir():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.unlink(missing_ok=True)


def write_page(directory: Path, rows: Sequence[Row], judgement: Judgement, *, flow: str, window: str) -> Path:
    """Write the page of a verdict, and forget the oldest ones of its directory; its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / file_name(window)
    path.write_text(verdict(rows, judgement, flow=flow, window=window))
    keep_newest(directory, PAGES_KEPT)
    return path


def verdict(rows: Sequence[Row], judgement: Judgement, *, flow: str, window: str) -> str:
    """The page: what failed, what was asked, the rows."""
    failed = judgement.failed
    said = f"{len(failed)} of {len(rows)} partitions did not pass" if failed else f"all {len(rows)} partitions passed"
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    parts = [f"<p>Judged in {html.escape(window)}, {now}.</p>"]
    if failed:
        reasons = [(topic, number, reason) for (topic, number), found in sorted(failed.items()) for reason in found]
        parts += ["<h2>What did not pass</h2>", table(("topic", "partition", "why"), reasons[:MOST_ROWS])]
        parts.append(_more(len(reasons)))
    if judgement.warnings:
        parts += ["<h2>Warnings</h2>", table(("warning",), [(warning,) for warning in judgement.warnings[:MOST_ROWS]])]
    parts += ["<h2>What was asked</h2>", _asked(judgement)]
    parts += [f"<h2>Partitions</h2><p>{_legend()}</p>", _rows(rows, judgement), _more(len(rows))]
    return document(f"{flow}: {said}", "".join(parts), "bad" if failed else "good")


def _asked(judgement: Judgement) -> str:
    lines, marks = [], []
    for asked in judgement.asked:
        met = "met" if not asked.failed else f"not met by {len(asked.failed)}"
        lines.append(
            (asked.suite, asked.expectation.notes, asked.text, asked.expectation.severity, asked.partitions, met)
        )
        marks.append("" if not asked.failed else "bad" if asked.is_critical else "warned")
    return table(("suite", "notes", "expectation", "severity", "partitions", "result"), lines, marks)


def _rows(rows: Sequence[Row], judgement: Judgement) -> str:
    ordered = sorted(rows, key=lambda row: (partition_of(row) not in judgement.failed, partition_of(row)))[:MOST_ROWS]
    marks = ["bad" if partition_of(row) in judgement.failed else "" for row in ordered]
    return table(tuple(COLUMNS), [tuple(_value(row, name) for name in COLUMNS) for row in ordered], marks)


def _value(row: Mapping[str, object], name: str) -> object:
    value = row.get(name)
    return "" if name == "error" and value is None else "not measured" if value is None else value


def _legend() -> str:
    return "The columns are explained in docs/expectations.md; those that did not pass come first."


def _more(count: int) -> str:
    return f"<p>… and {count - MOST_ROWS} more</p>" if count > MOST_ROWS else ""


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f'<td class="n">{value:,}</td>'
    text = str(value)
    return f"<td>{html.escape(text[:MOST_TEXT])}{'…' if len(text) > MOST_TEXT else ''}</td>"

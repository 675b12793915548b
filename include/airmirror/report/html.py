"""The parts of an HTML page: everything is escaped and bounded; no script, no other host."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

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


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f'<td class="n">{value:,}</td>'
    text = str(value)
    return f"<td>{html.escape(text[:MOST_TEXT])}{'…' if len(text) > MOST_TEXT else ''}</td>"

"""A document as one HTML page, a function of its JSON alone: a check makes it again and compares.

It has no script and needs no other host; everything on it is escaped. The whole JSON is on it, at its end.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airmirror.report.canonical import canonical
from airmirror.report.document import column_title
from airmirror.report.html import document, table
from airmirror.times import utc

MOST_ROWS = 2_000  # of a section; the JSON below has all
DELAY = ("delay: from a record's timestamp to its commit", True)
# Sections that are shown as curves over their ``time_ms``: what their columns are, and whether in milliseconds.
CURVES = {
    "progress": {"records": ("records copied so far", False), "delay_ms": DELAY},
    "event_time": {
        "source": ("records on the source", False),
        "target": ("records on the target", False),
        "longest_latency": DELAY,
    },
}
LAST_PLOTTED_MS = 4_102_444_800_000  # the year 2100
_BEGIN, _END = '<pre id="report">', "</pre>"
# Nothing that a reader can't see, or that turns the direction of writing.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")

_MARKS = {"ok": "", "warn": "warned", "stop": "bad"}  # of a finding's row, by its level


def page(told: Mapping[str, Any]) -> str:
    """The page of a document's JSON: first what matters."""
    who = f", by {_text(told['by'])}: {_text(told['reason'])}" if told["by"] else ""
    parts = [f"<p>{_text(told['about'])}, made {utc(told['made_ms'])} by Airmirror {_text(told['version'])}{who}.</p>"]
    if told["numbers"]:
        numbers = [(each["name"], each["value"]) for each in told["numbers"]]
        parts.append("<h2>The numbers that matter</h2>" + table(("", ""), numbers))
    if told["findings"]:
        rules = [
            tuple(_visible(each[key]) for key in ("level", "what", "evidence", "way_out")) for each in told["findings"]
        ]
        marks = [_MARKS.get(each["level"], "bad") for each in told["findings"]]
        parts.append("<h2>Findings</h2>" + table(("", "", "found", "way out"), rules, marks))
    if told["not_known"] or not told["findings"]:
        parts.append(f"<h2>What is not known</h2>{_list(told['not_known']) or '<p>Nothing that was asked.</p>'}")
    asked = [(column_title(key), value_told(key, value)) for key, value in sorted(told["asked"].items())]
    parts.append("<h2>What was asked</h2>" + table(("", ""), asked))
    for each in told["contents"]:
        rows, columns = told["sections"][each["section"]], told["columns"].get(each["section"], [])
        parts.append(f"<h2>{_text(each['title'])}</h2>" + (f"<p>{_text(each['about'])}</p>" if each["about"] else ""))
        if each["section"] in CURVES:
            parts.append(plot(rows, CURVES[each["section"]]))
        if each["section"] != "progress":  # its curves say it all
            parts.append(_section(rows, columns))
    parts.append(f"<h2>Authenticity</h2>{_authenticity(told)}")
    embedded = html.escape(canonical(told).decode(), quote=False)
    parts.append(f"<details><summary>The whole report as JSON</summary>{_BEGIN}{embedded}{_END}</details>")
    return document(_visible(told["headline"]), "".join(parts), "good" if told["is_good"] else "bad")


def embedded_json(text: str) -> bytes:
    """The JSON that a page holds; empty where it holds none."""
    _, found, rest = text.partition(_BEGIN)
    body, ended, _ = rest.partition(_END)
    return html.unescape(body).encode() if found and ended else b""


def _authenticity(report: Mapping[str, Any]) -> str:
    signer, after = report.get("signer"), report.get("after")
    said = [f"Signed by the Ed25519 key {signer['public_key']}." if signer else "It is not signed."]
    if after:
        said.append(f"The report before it: {after['file']}, SHA-256 {after['sha256']}.")
    elif "after" in report:
        said.append("The first of its chain.")
    said.append("Check it with: airmirror report check FILE.json --public-key FILE")
    return _list(said)


def _section(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    if not rows:
        return "<p>None.</p>"
    cells = [tuple(value_told(column, row.get(column)) for column in columns) for row in rows[:MOST_ROWS]]
    more = f"<p>… and {len(rows) - MOST_ROWS:,} more, in the JSON below</p>" if len(rows) > MOST_ROWS else ""
    return table([column_title(column) for column in columns], cells) + more


def value_told(column: str, value: object) -> object:
    """A cell as people read it: a time in UTC, yes or no, ranges; control characters are visible."""
    if value is None or (column.endswith("_ms") and isinstance(value, int) and value < 0):
        return "not known" if column.endswith("_ms") else "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return utc(value) if column.endswith("_ms") else value
    if isinstance(value, list):
        return ", ".join(
            f"{each[0]:,}–{each[1]:,}" if isinstance(each, list) else _visible(str(each)) for each in value
        )
    return _visible(str(value))


def _list(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def _text(text: object) -> str:
    return html.escape(_visible(str(text)))


def _visible(text: str) -> str:
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


WIDTH, HEIGHT = 720, 150


def plot(rows: Sequence[Mapping[str, Any]], curves: Mapping[str, tuple[str, bool]]) -> str:
    """Curves of rows, each of those that know its column (else None) at a time that an axis has."""
    # A stranger may have written the rows: "in range(...)" of what is no integer would try every number.
    rows, shown = [row for row in rows if 0 <= row["time_ms"] < LAST_PLOTTED_MS], ""
    for column, (title, is_ms) in curves.items():
        points = [(row["time_ms"], row[column]) for row in rows if row[column] is not None]
        if len(points) > 1:
            most = max(value for _, value in points)
            shown += _curve(title, points, f"{most / 1000:,.1f} s" if is_ms else f"{most:,}")
    return shown or "<p>Too little happened for a curve.</p>"


def _curve(title: str, points: Sequence[tuple[int, int]], most: str) -> str:
    first, last = points[0][0], points[-1][0]
    top = max(1, *(value for _, value in points))
    width = max(1, last - first)
    line = " ".join(
        f"{WIDTH * (at - first) / width:.1f},{HEIGHT * (1 - max(0, value) / top):.1f}" for at, value in points
    )
    return (
        f"<p>{title}, at most {most}; {utc(first)} to {utc(last)}</p>"
        f'<svg role="img" aria-label="{title}" viewBox="0 -4 {WIDTH} {HEIGHT + 8}" width="{WIDTH}" height="{HEIGHT + 8}">'
        f'<path d="M0 {HEIGHT}H{WIDTH}" stroke="#d8dee4"/>'
        f'<polyline points="{line}" fill="none" stroke="#067647" stroke-width="2"/></svg>'
    )

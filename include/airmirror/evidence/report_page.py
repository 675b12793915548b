"""A report as one HTML page, a function of its JSON alone: a check makes it again and compares.

It has no script and needs no other host; everything on it is escaped. The whole JSON is on it, at its end.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airmirror.evidence.canonical import canonical
from airmirror.evidence.plots import plot
from airmirror.evidence.reports import when
from airmirror.quality.page import document, table

MOST_ROWS = 2_000  # of a section; the JSON below has all
_BEGIN, _END = '<pre id="report">', "</pre>"
# Nothing that a reader can't see, or that turns the direction of writing.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")

TITLES = {
    "clusters": ("Clusters", "The id is the cluster's own, written when it was made: two clusters never share one."),
    "contradictions": ("Contradictions", "What is not now as the record says that it was."),
    "partitions": (
        "Partitions",
        "A topic is a named log of records; it is split into partitions, in each of which records have numbers, their offsets. "
        "The end of a range is not included. Every offset of the source is counted once: copied, control (a mark of a "
        "transaction), aborted (its transaction was taken back), a hole (nobody has written it, or compaction took it), or lost.",
    ),
    "windows": ("Windows", "A window is one run of replication."),
    "progress": ("Progress", ""),
    "holds": ("Held now", "Partitions that the gate, or an operator, keeps from counting as verified."),
    "decisions": ("Decisions", "What people have decided, and why."),
    "losses": ("Losses and new starts", "What was decided with `airmirror reset`."),
    "groups": (
        "Consumer groups",
        "A group is an application that reads; its position is the next offset that it reads.",
    ),
    "differences": ("Differences", "Every run of records that is not equal on both sides."),
    "ranges": ("Sample", "The ranges of offsets that were compared, the end not included. Nothing else was read."),
    "ledger": ("Ledger", "A database that mirrors the segment topic, compared with it."),
    "expectations": ("Expectations", "The gate lets a window advance only if these hold. As they are now."),
    "versions": ("Versions and configuration", "The digest is of all settings that count; secrets are not in it."),
}


def page(report: Mapping[str, Any]) -> str:
    """The page of a report's JSON."""
    parts = [
        f"<p>{_text(report['about'])}, made {when(report['made_ms'])} by Airmirror {_text(report['version'])}.</p>",
        "<h2>The numbers that matter</h2>",
        table(("", ""), [(each["name"], each["value"]) for each in report["numbers"]]),
        "<h2>What is not known</h2>",
        _list(report["not_known"]) or "<p>Nothing that was asked.</p>",
        "<h2>What was asked</h2>",
        table(("", ""), [(_title(key), _value(key, value)) for key, value in sorted(report["asked"].items())]),
    ]
    sections = report["sections"]
    for name in sorted(sections, key=_place):
        columns = report["columns"].get(name, [])
        title, said = TITLES.get(name, (name, ""))
        parts.append(f"<h2>{_text(title)}</h2>" + (f"<p>{_text(said)}</p>" if said else ""))
        parts.append(plot(sections[name]) if name == "progress" else _section(sections[name], columns))
    parts.append(f"<h2>Authenticity</h2>{_authenticity(report)}")
    embedded = html.escape(canonical(report).decode(), quote=False)
    parts.append(f"<details><summary>The whole report as JSON</summary>{_BEGIN}{embedded}{_END}</details>")
    return document(report["verdict"], "".join(parts), "good" if report["is_good"] else "bad")


def embedded_json(text: str) -> bytes:
    """The JSON that a page holds; empty where it holds none."""
    _, found, rest = text.partition(_BEGIN)
    body, ended, _ = rest.partition(_END)
    return html.unescape(body).encode() if found and ended else b""


def _authenticity(report: Mapping[str, Any]) -> str:
    signer, after = report.get("signer"), report.get("after")
    said = [f"Signed by the Ed25519 key {signer['public_key']}." if signer else "It is not signed."]
    said.append(
        f"The report before it: {after['file']}, SHA-256 {after['sha256']}." if after else "The first of its chain."
    )
    said.append("Check it with: airmirror report check FILE.json --public-key FILE")
    return _list(said)


def _place(name: str) -> tuple[int, str]:
    return (list(TITLES).index(name) if name in TITLES else len(TITLES)), name


def _section(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    if not rows:
        return "<p>None.</p>"
    cells = [tuple(_value(column, row.get(column)) for column in columns) for row in rows[:MOST_ROWS]]
    more = f"<p>… and {len(rows) - MOST_ROWS:,} more, in the JSON below</p>" if len(rows) > MOST_ROWS else ""
    return table([_title(column) for column in columns], cells) + more


def _title(column: str) -> str:
    return column.removesuffix("_ms").replace("_", " ")


def _value(column: str, value: object) -> object:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return when(value) if column.endswith("_ms") else value
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

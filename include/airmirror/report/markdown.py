"""A document as Markdown, for a question under *Required Actions*. Every text that is not ours is escaped."""

from __future__ import annotations

import re

from airmirror.report.document import Document, column_title
from airmirror.report.page import value_told

MOST_REASON = 300  # characters of a text that is not ours
MOST_ROWS = 100  # of a section in one question


def body(made: Document, first: str) -> str:
    """The findings and the brief sections. ``first``: what approving does, in Markdown."""
    why = f" Why: {escape(made.reason)}." if made.reason else ""
    lines = [f"Nothing is written yet.{why} {first}", ""]
    for each in made.findings:
        way_out = f" ({escape(each.way_out)})" if each.way_out else ""
        lines.append(f"- **{each.level}** {escape(each.what)}: {escape(each.evidence)}{way_out}")
    for section in made.sections:
        if section.brief and section.rows:
            lines += ["", f"**{escape(section.title)}**", ""]
            columns = section.columns
            lines.append(f"| {' | '.join(map(column_title, columns))} |")
            lines.append("|---" * len(columns) + "|")
            for row in section.rows[:MOST_ROWS]:
                cells = (escape(str(value_told(name, row[name]))) for name in columns)
                lines.append(f"| {' | '.join(cells)} |")
            lines.append(f"\n{len(section.rows):,} in all.")
    return "\n".join(lines)


def escape(text: str, most: int = MOST_REASON) -> str:
    """A text as Markdown that shows it as it is, on one line, and no longer than ``most`` characters."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    cut = plain if len(plain) <= most else plain[:most] + "…"
    marked = re.sub(r"([\\`*_\[\]<|~#&!@])", r"\\\1", cut)
    return re.sub(r"(?i)(:)(?=//)|(?<=www)(\.)", r"\\\g<0>", marked)

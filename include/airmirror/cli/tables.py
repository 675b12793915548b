"""Lines and tables for people. What comes from a broker, a log or a file is data: it is printed, and paints nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

MOST_ROWS = 200
NARROWEST = 8  # characters of a column of words
Cell = str | int | float | Text | None
GOOD, BAD, DOUBTFUL = "green", "red", "yellow"

# A terminal would obey them: control characters but line feed and tab, and those that turn the direction of writing.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_TRAILING = re.compile(r" +(?=(?:\x1b\[[0-9;]*m)*$)", re.MULTILINE)


def safe(text: object) -> str:
    """The text with each control character as its escape."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))


def line(label: str, text: object, style: str = BAD) -> Text:
    """A line that begins with a painted word."""
    return Text.assemble((label, style), " ", safe(text))


def verdict(passed: bool) -> Text:
    return Text("yes", GOOD) if passed else Text("no", BAD)


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, right: Iterable[str] = (), empty: str = ""
) -> RenderableType:
    """A table of the first rows; without any, a line that says so: ``title: empty``. Numbers have their thousands apart.

    ``right``: the columns of numbers. None is shown as "–".
    """
    rows = list(rows)
    if not rows:
        return Text(f"{safe(title)}: {empty or 'nothing'}")
    made = Table(
        title=Text(safe(title)),
        title_justify="left",
        header_style="bold",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        show_edge=False,
        caption_justify="left",
    )
    cells = [tuple(map(_cell, row)) for row in rows[:MOST_ROWS]]
    for place, column in enumerate(columns):
        number = column in right
        widest = max(row[place].cell_len for row in cells)
        # Where the terminal is too narrow words are folded; a number is whole, even past the edge.
        least = widest if number else min(widest, NARROWEST)
        made.add_column(column, justify="right" if number else "left", overflow="fold", min_width=least)
    for row in cells:
        made.add_row(*row)
    if len(rows) > MOST_ROWS:
        made.caption = f"{len(rows) - MOST_ROWS} more rows: use --json"
    return made


def show(console: Console, *shown: RenderableType) -> None:
    """Print without blanks at the ends of lines, an empty line between tables."""
    with console.capture() as captured:
        for number, each in enumerate(shown):
            if number and isinstance(each, Table | Group):
                console.print()
            soft = isinstance(each, str | Text)
            console.print(Text(each) if isinstance(each, str) else each, soft_wrap=soft, crop=False)
    console.file.write(_TRAILING.sub("", captured.get()))
    console.file.flush()


def print_json(console: Console, value: object) -> None:
    """JSON for programs. Colours are for terminals only: rich takes seconds for the rows of 10,000 partitions."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if console.is_terminal:
        console.print_json(text)
    else:
        console.file.write(f"{text}\n")


def _cell(value: Cell) -> Text:
    if isinstance(value, Text):
        return value
    if value is None:
        return Text("–")
    if isinstance(value, str):  # a name with a line feed would write rows of its own
        return Text(safe(value).replace("\n", "\\n").replace("\t", "\\t"))
    return Text(f"{value:,.1f}" if isinstance(value, float) else f"{value:,}")

"""Lines and tables for people. What comes from a broker, a log or a file is data: it is printed, and paints nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from airmirror.rows import rows_of

MOST_ROWS = 200
NARROWEST = 16  # characters of a column of words
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


def cells_of(items: Iterable[object], columns: str, **made: Callable[[Any], Cell]) -> list[list[Cell]]:
    """The rows of a table: the values of ``rows_of``."""
    return [list(row.values()) for row in rows_of(items, columns, **made)]


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, empty: str = "") -> RenderableType:
    """A table of the first rows; without any, a line that says so: ``title: empty``. Numbers have their thousands apart.

    The name of a column of numbers begins with ">". None is shown as "–".
    """
    rows = list(rows)
    if not rows:
        return Text(f"{safe(title)}: {empty or 'nothing'}")
    return Rows(
        safe(title),
        tuple(name.removeprefix(">") for name in columns),
        tuple(tuple(map(_cell, row)) for row in rows[:MOST_ROWS]),
        frozenset(name[1:] for name in columns if name.startswith(">")),
        len(rows) - MOST_ROWS,
    )


@dataclass(frozen=True)
class Rows:
    """A table; where the terminal is too narrow for it, lines for each row. A number is in one piece, nothing is cut."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Text, ...], ...]
    right: frozenset[str]
    more: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(self.title, "italic")
        widths = self._widths(options.max_width)
        if widths:
            yield self._grid(widths)
        else:
            yield from self._lines(options.max_width)
        if self.more > 0:
            yield Text(f"{self.more} more rows: use --json", "dim italic")

    def _widths(self, room: int) -> list[int]:
        """The width of each column: words may be folded, but not to slivers; none where there is no room."""
        widest = [max(row[at].cell_len for row in self.rows) for at in range(len(self.columns))]
        natural = [max(len(name), cell) for name, cell in zip(self.columns, widest, strict=True)]
        widths = [
            max([cell if name in self.right else min(cell, NARROWEST), *map(len, name.split())])
            for name, cell in zip(self.columns, widest, strict=True)
        ]
        spare = room - sum(widths) - 2 * len(widths) + 1
        if spare < 0:
            return []
        while spare and widths != natural:
            for at, most in enumerate(natural):
                if spare and widths[at] < most:
                    widths[at], spare = widths[at] + 1, spare - 1
        return widths

    def _grid(self, widths: Sequence[int]) -> Table:
        made = Table(header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
        for name, width in zip(self.columns, widths, strict=True):
            made.add_column(name, justify="right" if name in self.right else "left", overflow="fold", width=width)
        for row in self.rows:
            made.add_row(*row)
        return made

    def _lines(self, room: int) -> Iterator[Text]:
        """Each row as its cells with their columns' names, as many in a line as there is room for."""
        for row in self.rows:
            line = Text()
            for name, cell in zip(self.columns, row, strict=True):
                said = Text.assemble((f"{name} " if name else "", "bold"), cell, overflow="fold")
                if line and line.cell_len + 3 + said.cell_len > room:
                    yield line
                    line = Text("  ")
                line = said if not line else line + (Text("" if line.plain == "  " else " · ") + said)
            yield line


def print_all(console: Console, *shown: RenderableType) -> None:
    """Print without blanks at the ends of lines, an empty line between tables."""
    with console.capture() as captured:
        for number, each in enumerate(shown):
            if number and isinstance(each, Rows):
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

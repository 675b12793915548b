"""Texts from a broker are printed as they are: no markup, no escape sequence of it counts."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from airmirror.cli.tables import line, print_all, table
from airmirror.cli.topics import _table
from airmirror.topics.drift import Drift

HOSTILE = ("[/foo]", "[green]verified[/]", "a\x1b[31mred", "b\x1b]8;;http://evil\x1b\\link", "c\u202etxt")


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("terminal", [False, True])
def test_names_paint_nothing(name: str, terminal: bool) -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=terminal, width=200)
    print_all(console, table(name, ("group", ">n"), [(name, 1)]), line("error", name))
    text = written.getvalue()
    printable = name.encode("unicode_escape").decode() if not name.isprintable() else name
    assert text.count(printable.replace("\\x1b\\\\", "\\x1b\\")) == 3
    assert "\x1b[31mred" not in text and "\x1b]" not in text and "\u202e" not in text


def test_what_becomes_of_a_topic_paints_nothing() -> None:
    written = io.StringIO()
    drift = Drift("t", "r", "retention.ms", "1", "2", outcome="1\x1b[31mred", reason="", will_change=True)
    print_all(Console(file=written, force_terminal=True, width=200), _table("drift", [drift]))
    assert "1\\x1b[31mred" in written.getvalue() and "1\x1b[31m" not in written.getvalue()


def test_a_name_writes_no_row_of_its_own() -> None:
    written = io.StringIO()
    print_all(Console(file=written, width=200), table("t", ("group", ">n"), [("a\n  evil  7\tx", 1)]))
    assert [each for each in written.getvalue().splitlines() if "evil" in each] == ["a\\n  evil  7\\tx  1"]


def test_an_empty_table_says_so_and_no_line_ends_with_blanks() -> None:
    written = io.StringIO()
    console = Console(file=written, width=10_000)
    print_all(
        console,
        table("held", ("topic",), [], empty="none is held"),
        table("t", ("a", "b"), [("x", ""), ("y" * 500, "z")]),
    )
    assert written.getvalue().startswith("held: none is held\n")
    assert all(each == each.rstrip() for each in written.getvalue().splitlines()) and "y" * 500 in written.getvalue()


NUMBERS = (374_998, 1_234_567_890_123, 12.5, 2**63 - 1, 0)
WORDS = ("orders.of.the.shop.in.the.east-v2", "9f3c0a7d51e24b68", "yes")


@pytest.mark.parametrize("numbers", range(1, 9))
@pytest.mark.parametrize("words", range(4))
def test_at_80_columns_no_digit_and_no_letter_is_lost(words: int, numbers: int) -> None:
    """A number is in one piece; words may be folded."""
    written = io.StringIO()
    names = ["topic", "window", "verified"][:words]
    counts = [f">unverified records {number}" for number in range(numbers)]
    row = [*WORDS[:words], *(NUMBERS * 2)[:numbers]]
    print_all(Console(file=written, width=80), table("t", (*names, *counts), [row, row]))
    text = written.getvalue()
    for number in (NUMBERS * 2)[:numbers]:
        assert text.count(f"{number:,}") >= 2, text
    assert all(len(line) <= 80 for line in text.splitlines()), text
    _, is_grid, body = text.partition("─\n")
    for word in WORDS[:words]:
        folded = all(body.count(letter) >= 2 * word.count(letter) for letter in word)
        assert folded if is_grid else text.count(word) == 2, text

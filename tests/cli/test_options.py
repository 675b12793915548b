"""What goes on, on a terminal: names in it are data."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from airmirror.cli.options import telling


def test_a_name_is_no_markup() -> None:
    """Whoever may commit an offset names a group; this one ends a style that nobody began."""
    shown = StringIO()
    with telling(Console(file=shown, force_terminal=True, width=120), "first") as tell:
        tell("waiting until x[/y] have no members on east")
    assert "x[/y]" in shown.getvalue()

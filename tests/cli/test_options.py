"""What goes on, on a terminal: names in it are data."""

from __future__ import annotations

import getpass
import os
import re
from io import StringIO

import pytest
from rich.console import Console

from airmirror.cli.options import telling, whoami


def test_a_name_does_nothing_to_the_terminal() -> None:
    shown = StringIO()
    with telling(Console(file=shown, force_terminal=True, width=120), "first") as tell:
        tell("waiting until x\x1b]8;;http://evil\x1b\\ have no members on east")
    assert "x\\x1b]8;;http://evil" in shown.getvalue() and not re.search(r"\x1b[]\\]", shown.getvalue())


def test_a_name_is_no_markup() -> None:
    """Whoever may commit an offset names a group; this one ends a style that nobody began."""
    shown = StringIO()
    with telling(Console(file=shown, force_terminal=True, width=120), "first") as tell:
        tell("waiting until x[/y] have no members on east")
    assert "x[/y]" in shown.getvalue()


@pytest.mark.parametrize("error", [KeyError, OSError])
def test_a_user_that_the_machine_does_not_know_has_a_number(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown() -> str:
        raise error("uid not found")

    monkeypatch.setattr(getpass, "getuser", unknown)
    assert whoami().startswith(f"uid-{os.getuid()}@")

"""What every program answers: its version, and its help; and the habits that all commands have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from airmirror import __version__
from airmirror.cli.main import app


def test_the_version_is_told() -> None:
    told = CliRunner().invoke(app, ["--version"])
    assert told.exit_code == 0 and told.output == f"airmirror {__version__}\n"


@pytest.mark.parametrize("words", [(), ("status",), ("failover", "plan")])
def test_help_has_a_short_name(words: tuple[str, ...]) -> None:
    short, long = (CliRunner().invoke(app, [*words, name]) for name in ("-h", "--help"))
    assert short.exit_code == 0 and short.output == long.output and "Usage" in short.output


def test_every_command_has_its_place_in_the_help_and_no_line_of_it_ends_early() -> None:
    root = typer.main.get_command(app)
    assert {each.rich_help_panel for each in root.commands.values()} == {
        "Look",
        "Copy",
        "Prove",
        "Decide",
        "Move",
        "Try it",
    }  # type: ignore[attr-defined]
    assert not [name for name, help_ in helps(root) if re.search(r"[^\n]\n[^\n]", help_)]


def test_who_decides_may_look_first() -> None:
    """Without --yes nothing is decided, and --by means the same everywhere."""
    deciding = {name: command for name, command in leaves(typer.main.get_command(app)) if option(command, "by")}
    assert {"hold add", "hold release", "flow freeze", "reset", "failover run"} <= deciding.keys()
    for name, command in deciding.items():
        assert (option(command, "yes").opts, option(command, "yes").default) == (["--yes"], False), name
        assert "user@host if not given" in option(command, "by").help, name


def leaves(command: Any, *path: str) -> Iterator[tuple[str, Any]]:
    for name, inner in getattr(command, "commands", {"": command} if path else {}).items():
        yield from leaves(inner, *path, name) if name else [(" ".join(path), command)]


def helps(root: Any) -> Iterator[tuple[str, str]]:
    return ((name, command.help or "") for name, command in leaves(root))


def option(command: Any, name: str) -> Any:
    return next((each for each in command.params if each.name == name), None)

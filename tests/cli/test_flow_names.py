"""A command without ``--flow`` is about the only flow that there is, by its name, in the ledger too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from airmirror.cli.main import app
from airmirror.ledger import Ledger

FILE = """clusters = east, west
east.bootstrap.servers = one:9092
west.bootstrap.servers = two:9092
east->west.enabled = true
"""
VALUES = {"--way": "planned", "--reason": "a test"}
EITHER = {("translate",): ("--group", "some")}


class Asked(Exception):
    """The flow that a command opens in the ledger."""


def commands(command: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """Every command that opens a flow, with what it must be given."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, *path, name)
    if {"flow", "ledger"} <= {each.name for each in command.params}:
        yield (
            *path,
            *EITHER.get(path, ()),
            *(word for each in command.params if each.required for word in given(each)),
        )


def given(parameter: Any) -> tuple[str, ...]:
    name = parameter.opts[0]
    return (name, VALUES.get(name, "some")) if name.startswith("--") else ("some",)


@pytest.mark.parametrize("words", list(commands(typer.main.get_command(app))), ids=" ".join)
def test_the_ledger_gets_the_name_of_the_only_flow(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(_: Ledger, name: str) -> None:
        raise Asked(name)

    monkeypatch.setattr(Ledger, "flow", asked)
    file = tmp_path / "mirror.properties"
    file.write_text(FILE)
    done = CliRunner().invoke(app, [*words, "--config", str(file), "--ledger", f"sqlite:///{tmp_path}/ledger.db"])
    assert isinstance(done.exception, Asked), done.output
    assert str(done.exception) == "east->west"

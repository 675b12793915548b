"""Every command that a message or a document prints runs as printed: the commands' own parser takes it."""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import Any

import pytest
import typer

from airmirror.cli.main import app
from airmirror.slot.errors import PartitionError
from airmirror.windows.errors import ReturnOver
from support import ROOT
from support.documents import PAGES
from support.errors import FLOW, all_errors, sample

UsageError = typer.BadParameter.__base__ or Exception  # Typer has a click of its own


@cache
def parser() -> Any:
    return typer.main.get_command(app)


def parse(words: list[str]) -> Any:
    """The context that the commands' parser makes of a command line. Raises UsageError."""
    command: Any = parser()
    context = command.make_context("airmirror", words[1:])
    while hasattr(command, "resolve_command") and context._protected_args:
        name, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        command, context = found, found.make_context(name, rest, parent=context)
    return context


def commands_in(text: str) -> list[list[str]]:
    return [shlex.split(found) for found in re.findall(r"`(airmirror [^`]*)`", text)]


def test_commands_of_every_error_run_as_printed() -> None:
    seen = set()
    for error in map(sample, all_errors()):
        for words in commands_in(str(error)):
            context = parse(words)
            seen.add(words[1])
            if "flow" in context.params:
                asked = error.reverse if isinstance(error, ReturnOver) else FLOW  # whose records return by this flow
                assert context.params["flow"] == asked, (type(error), words)
            if "topic" in context.params and isinstance(error, PartitionError):
                assert "orders with a blank" in context.params["topic"], (type(error), words)
    assert seen >= {"reset", "verify", "hold", "groups"}  # else nothing was found to look at


def test_the_parser_refuses_what_does_not_run() -> None:
    for wrong in ("airmirror reset --flow", "airmirror reset --flow x --acept-loss", "airmirror hold relese orders"):
        with pytest.raises(UsageError):
            parse(shlex.split(wrong))


def test_commands_in_the_documents_run_as_printed() -> None:
    """Those written out with their options; a bare name, as in "see `airmirror status`", is a name."""
    wrong = []
    for file in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        if file.name in PAGES:  # usage, and messages that the test above has looked at
            continue
        text = file.read_text().replace("\\\n", " ")
        found = re.findall(r"`(airmirror [^`\n]*)`", text) + re.findall(
            r"^(?:\S*/)?(airmirror .*)$", text, re.MULTILINE
        )
        for line in found:
            words = shlex.split(re.split(r" (?:[|;]|&&) ", line)[0], comments=True)
            words = words if any(word.startswith("--") for word in words) else ["airmirror", *words[1:], "--help"]
            try:
                parse(words)
            except UsageError as error:
                wrong.append(f"{file.name}: {line}: {error}")
            except typer.Exit:
                pass  # --help
    assert not wrong, "\n".join(wrong)

"""Every command that a message or a document prints runs as printed: the commands' own parser takes it."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
import shlex
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import typer

import airmirror
from airmirror.cli.main import app
from airmirror.clusters.admin.acls import Acl
from airmirror.config import Problem
from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition
from airmirror.slot.errors import PartitionError, of_flow

FLOW = "east->west"
ROOT = Path(__file__).parents[2]
UsageError = typer.BadParameter.__base__ or Exception  # Typer has a click of its own
_SAMPLES: dict[str, Any] = {
    "str": "sample", "int": 7, "float": 1.5, "bool": True, "int | None": 7, "float | None": None, "str | None": "sample",
    "tuple[str, ...]": ("one", "two"), "tuple[str, str]": ("one", "two"), "tuple[int, ...]": (1, 2), "bytes": b"b",
    "tuple[tuple[str, int, int], ...]": (("orders", 0, 7),), "TopicPartition": TopicPartition("orders", 0),
    "tuple[Problem, ...]": (Problem(3, "key", "message"),), "UUID": UUID(int=1),
    "Mapping[TopicPartition, int]": {TopicPartition("orders", 0): 7},
    "Mapping[TopicPartition, str]": {TopicPartition("orders", 0): "sample"}, 
    "Acl": Acl("orders", "LITERAL", "User:ann", "*", "READ", "ALLOW"),
}  # fmt: skip
_NAMED = {"flow": FLOW, "topic": "orders with a blank", "cluster": "east"}


def subclasses(cls: type[AirmirrorError]) -> set[type[AirmirrorError]]:
    return {cls}.union(*(subclasses(each) for each in cls.__subclasses__()))


def all_errors() -> list[type[AirmirrorError]]:
    for module in pkgutil.walk_packages(airmirror.__path__, "airmirror."):
        if ".ledger.migrations" not in module.name:  # Alembic's, which runs only inside of it
            importlib.import_module(module.name)
    mine = (each for each in subclasses(AirmirrorError) if each.__module__.startswith("airmirror."))
    return sorted(mine, key=lambda each: (each.__module__, each.__name__))


def sample(error: type[AirmirrorError]) -> AirmirrorError:
    """One with sample facts, told its flow as where it meets it."""
    if not dataclasses.is_dataclass(error):
        return error()
    facts = {}
    for field in dataclasses.fields(error):
        kind = str(field.type)
        facts[field.name] = _NAMED[field.name] if field.name in _NAMED and kind == "str" else _SAMPLES[kind]
    made = of_flow(error(**facts), FLOW)
    assert made is not None
    return made


def parse(words: list[str]) -> Any:
    """The context that the commands' parser makes of a command line. Raises UsageError."""
    command: Any = typer.main.get_command(app)
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
                assert context.params["flow"] == FLOW, (type(error), words)
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

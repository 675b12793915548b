"""The list of mutations, and applying one: its text must stand in its file exactly once."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("mutations.toml")


@dataclass(frozen=True)
class Mutation:
    """``before`` becomes ``after`` in ``file``; ``tests`` are what pytest is given: files, or single tests.

    ``quick``: those of them that need no servers notice it.
    """

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    quick: bool = False


class DoesNotApply(Exception):
    """The product has changed: the mutation must be rewritten."""


def load(file: Path = LIST) -> list[Mutation]:
    """All of them, in the file's order. Raises KeyError, TypeError or ValueError for what is no mutation."""
    found = [
        Mutation(**{**entry, "tests": tuple(entry["tests"])}) for entry in tomllib.loads(file.read_text())["mutation"]
    ]
    names = [mutation.name for mutation in found]
    if double := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two mutations have one name: {sorted(double)}")
    if idle := [mutation.name for mutation in found if mutation.before == mutation.after or not mutation.tests]:
        raise ValueError(f"mutations that change nothing, or that no test is named for: {idle}")
    return found


def mutated(mutation: Mutation, text: str) -> str:
    """The file's text with the mutation. Raises DoesNotApply."""
    count = text.count(mutation.before)
    if count != 1:
        raise DoesNotApply(f"{mutation.name}: its text stands {count} times in {mutation.file}, and not once")
    return text.replace(mutation.before, mutation.after)

"""Breadth first through every state that can be reached; the shortest way to a state that must not be."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

State = TypeVar("State", bound=Hashable)


@dataclass(frozen=True)
class Explored:
    """``states``: different ones; ``steps``: ways between them, and ``words`` those of all that were taken. ``way``: the steps to
    what is ``wrong``, if anything is."""

    scope: str
    states: int
    steps: int
    depth: int
    seconds: float
    whole: bool  # whether there was nothing left to explore
    wrong: str = ""
    way: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()

    def __str__(self) -> str:
        extent = "all" if self.whole else "not all"
        lines = [
            f"{self.scope}: {self.states:,} states ({extent}), {self.steps:,} steps, at most {self.depth} deep, "
            f"{self.seconds:.1f} s: {self.wrong or 'every invariant holds'}"
        ]
        return "\n".join(lines + [f"  {number}. {step}" for number, step in enumerate(self.way, start=1)])


def explore(
    name: str,
    first: State,
    follow: Callable[[State], Iterable[tuple[str, State]]],
    broken: Callable[[State], str],
    most: int = 10_000_000,
) -> Explored:
    """Explore a scope until everything is seen, something is wrong, or there are ``most`` states.

    A state that was seen is known by its 64-bit hash: of ten million states two are alike with a chance of 1 in 370,000.
    """
    begun = time.perf_counter()
    came: dict[int, tuple[int, str]] = {hash(first): (0, "")}
    layer, depth, steps, said = [first], 0, 0, set[str]()

    def found(*, whole: bool = False, wrong: str = "", way: tuple[str, ...] = ()) -> Explored:
        seconds = time.perf_counter() - begun
        return Explored(name, len(came), steps, depth, seconds, whole, wrong, way, frozenset(said))

    while layer:
        following: list[State] = []
        for world in layer:
            here = hash(world)
            for words, after in follow(world):
                steps += 1
                said.add(words)
                there = hash(after)
                if there in came:
                    continue
                came[there] = (here, words)
                if reason := broken(after):
                    depth += 1
                    return found(wrong=reason, way=_way(came, there))
                following.append(after)
            if len(came) >= most:
                depth += 1
                return found()
        layer = following
        depth += bool(layer)
    return found(whole=True)


def _way(came: dict[int, tuple[int, str]], state: int) -> tuple[str, ...]:
    names = []
    while came[state][1]:
        state, name = came[state]
        names.append(name)
    return tuple(reversed(names))

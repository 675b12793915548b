"""Breadth first through every state that can be reached; the shortest way to a state that must not be."""

from __future__ import annotations

import time
from dataclasses import dataclass

from model.invariants import broken
from model.protocol import Scope, follow
from model.rules import Rules
from model.world import World


@dataclass(frozen=True)
class Explored:
    """``states``: different ones; ``steps``: ways between them. ``way``: the steps to what is ``wrong``, if anything is."""

    scope: str
    states: int
    steps: int
    depth: int
    seconds: float
    whole: bool  # whether there was nothing left to explore
    wrong: str = ""
    way: tuple[str, ...] = ()

    def __str__(self) -> str:
        extent = "all" if self.whole else "not all: the limit was reached"
        lines = [
            f"{self.scope}: {self.states:,} states ({extent}), {self.steps:,} steps, at most {self.depth} deep, "
            f"{self.seconds:.1f} s: {self.wrong or 'every invariant holds'}"
        ]
        return "\n".join(lines + [f"  {number}. {step}" for number, step in enumerate(self.way, start=1)])


def explore(scope: Scope, rules: Rules, most: int = 10_000_000) -> Explored:
    """Explore a scope until everything is seen, something is wrong, or there are ``most`` states.

    A state that was seen is known by its 64-bit hash: of ten million states two are alike with a chance of 1 in 370,000.
    """
    begun = time.perf_counter()
    first = scope.first()
    came: dict[int, tuple[int, str]] = {hash(first): (0, "")}
    layer, depth, steps = [first], 0, 0
    while layer:
        following: list[World] = []
        for world in layer:
            here = hash(world)
            for name, after in follow(scope, rules, world):
                steps += 1
                there = hash(after)
                if there in came:
                    continue
                came[there] = (here, name)
                if reason := broken(scope, after):
                    seconds = time.perf_counter() - begun
                    return Explored(
                        scope=scope.name,
                        states=len(came),
                        steps=steps,
                        depth=depth + 1,
                        seconds=seconds,
                        whole=False,
                        wrong=reason,
                        way=_way(came, there),
                    )
                following.append(after)
            if len(came) >= most:
                return Explored(
                    scope=scope.name,
                    states=len(came),
                    steps=steps,
                    depth=depth + 1,
                    seconds=time.perf_counter() - begun,
                    whole=False,
                )
        layer = following
        depth += bool(layer)
    return Explored(
        scope=scope.name, states=len(came), steps=steps, depth=depth, seconds=time.perf_counter() - begun, whole=True
    )


def _way(came: dict[int, tuple[int, str]], state: int) -> tuple[str, ...]:
    names = []
    while came[state][1]:
        state, name = came[state]
        names.append(name)
    return tuple(reversed(names))

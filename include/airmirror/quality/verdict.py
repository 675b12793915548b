"""The gate's answer: what was asked of the rows, and what failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airmirror.quality.suites import Expectation

Partition = tuple[str, int]


@dataclass(frozen=True)
class AskedExpectation:
    """One expectation of a suite, of how many partitions it was asked, and which of them it failed."""

    suite: str
    expectation: Expectation
    partitions: int
    failed: tuple[Partition, ...]
    is_critical: bool

    @property
    def text(self) -> str:
        """As the suite has it: the type and its arguments."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.expectation.kwargs.items())
        return f"{self.expectation.type}({arguments})"


@dataclass(frozen=True)
class Validation:
    """The gate's answer. ``failed``: reasons by partition."""

    failed: Mapping[Partition, tuple[str, ...]]
    warnings: tuple[str, ...]
    asked: tuple[AskedExpectation, ...] = ()

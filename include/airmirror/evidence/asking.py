"""The question of a comparison: which topics of two clusters, and which of their records."""

from __future__ import annotations

from dataclasses import dataclass

from airmirror.config.values import TOPIC, as_sample, renamed
from airmirror.errors import AirmirrorError
from airmirror.evidence.borders import SampleSize
from airmirror.evidence.parts import View


class NothingToCompare(AirmirrorError, bad_input=True):
    """No topic of the source matches."""

    cluster: str
    topics: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"cluster {self.cluster!r}: no topic matches {', '.join(self.topics)}; is the user allowed to describe it?"
        )


class BadRename(AirmirrorError, bad_input=True):
    """A template for the target's topics without a place for the source's name."""

    template: str

    def __str__(self) -> str:
        return (
            f"--rename {self.template!r} has no {TOPIC}; write for example 'east.{TOPIC}', or 'shadow.{{topic#east.}}' where "
            "the source's topics begin with 'east.'"
        )


class BadSample(AirmirrorError, bad_input=True):
    """A sample that is neither a share nor a number of ranges."""

    says = (
        "--sample {0.given!r}: write a share of each partition, as in 0.5% or 10%, or a number of ranges of each, as "
        "in 20"
    )
    given: str


class EmptyTimeRange(AirmirrorError, bad_input=True):
    """A range of time without a moment in it."""

    says = "--from {0.first} is not before --to {0.end}: no moment lies between them"
    first: str
    end: str


@dataclass(frozen=True)
class ComparisonRequest:
    """The parts to compare. ``first_ms`` and ``end_ms``: only records of these times (epoch, the end not included), or None.

    ``rename`` makes a target's topic of a source's; ``is_committed``: as consumers with read_committed see both logs.
    ``sample``: of each partition only some ranges; None: all of it. ``within``: only topics of these too.
    """

    topics: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    rename: str = TOPIC
    first_ms: int | None = None
    end_ms: int | None = None
    times: bool = True
    is_committed: bool = True
    sample: SampleSize | None = None
    within: tuple[str, ...] = (".*",)

    def remote(self, topic: str) -> str:
        return renamed(self.rename, topic)

    @property
    def view(self) -> View:
        return View(self.is_committed, self.times)


def sample_of(text: str, seed: int) -> SampleSize | None:
    """The sample that is written as ``10%`` or as ``20``; empty: none. Raises BadSample."""
    if not text:
        return None
    try:
        return SampleSize(*as_sample(text), seed)
    except ValueError as error:
        raise BadSample(text) from error

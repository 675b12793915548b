"""Errors: each carries its facts as attributes, says what happened, where, and the way out.

An error is *transient* (the same call may work later: retry) or *final* (an operator must decide or mend something first); it is
*bad input* where what was typed or configured is to blame.
Subclasses are dataclasses, without saying so, whose fields are the facts; the message is what ``says`` makes of them, or their
own ``__str__``. They survive pickling, so they can cross from a Spark task to the driver.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, dataclass_transform


@dataclass_transform(eq_default=False)
@dataclass(eq=False)
class AirmirrorError(Exception):
    """The base of all errors that Airmirror raises on purpose: ``class FlowBusy(AirmirrorError, transient=True)``."""

    transient: ClassVar[bool] = False
    bad_input: ClassVar[bool] = False
    # The message: "{0.topic!r}" is a fact of the error, "{airmirror:verify}" that command for its flow and its topics; in it
    # ".move" is a fact, as one word.
    says: ClassVar[str] = ""

    def __str__(self) -> str:
        return self.says.format(self, airmirror=_Command(self))

    def __init_subclass__(cls, *, transient: bool | None = None, bad_input: bool | None = None) -> None:
        super().__init_subclass__()
        dataclass(eq=False)(cls)
        if transient is not None:
            cls.transient = transient
        if bad_input is not None:
            cls.bad_input = bad_input

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), dict(self.__dict__))


@dataclass(frozen=True)
class _Command:
    """The commands of a message: each for the error's flow, and its topics, where it has such facts."""

    error: AirmirrorError

    def __format__(self, words: str) -> str:
        facts = [getattr(self.error, word[1:]) if word.startswith(".") else word for word in words.split()]
        return command(*facts, flow=getattr(self.error, "flow", ""), topics=getattr(self.error, "topics", ()))


def _rebuild(cls: type[AirmirrorError], facts: dict[str, Any]) -> AirmirrorError:
    error = cls.__new__(cls)
    error.__dict__.update(facts)
    return error


def listed(reasons: Sequence[str], most: int = 20) -> str:
    """The first reasons, a line each, and how many more there are: a message has an end."""
    more = f"\n… and {len(reasons) - most} more" if len(reasons) > most else ""
    return "\n".join(reasons[:most]) + more


def named(names: Sequence[str], most: int = 5, between: str = ", ") -> str:
    """The first names in one line, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def counted(count: int, what: str) -> str:
    """A number of things, as in "1 partition" and "2 partitions"."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def command(*words: object, flow: str = "", topics: Iterable[str] = ()) -> str:
    """A command of ``airmirror`` as a person may copy it out of a message: quoted for a shell, between backquotes."""
    of = [*(word for each in topics for word in ("--topic", each)), *(("--flow", flow) if flow else ())]
    return f"`{shlex.join(['airmirror', *map(str, words), *of])}`"

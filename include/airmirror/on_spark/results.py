"""The answers of tasks, as JSON. The driver holds every cluster's credentials, so an executor's answer is data, not a pickle."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import Outcome, SlotResult

LARGEST = 1 << 26  # bytes of one slot's answer
LONGEST = 20_000  # characters of a text
Made = TypeVar("Made")
_PLAIN = {name: kind for name, kind in get_type_hints(SlotResult).items() if kind in (str, int, float)}  # of its fields


class BadAnswer(ValueError):
    """An answer that no slot gives."""


class SlotError(AirmirrorError):
    """An error of a slot that this driver does not know by its name."""

    says = "{0.text}"
    text: str
    again: bool

    @property
    def transient(self) -> bool:  # type: ignore[override]
        return self.again


def encode(answer: Sequence[SlotResult]) -> bytes:
    rows = [vars(each) | {"error": each.error and plain_error(each.error)} for each in answer]
    return json.dumps({"results": rows}).encode()


def encode_error(error: AirmirrorError) -> bytes:
    """The error of a task that has nothing else to answer."""
    return json.dumps({"error": plain_error(error)}).encode()


def decode(data: bytes, asked: Collection[TopicPartition]) -> list[SlotResult]:
    """The results; ``asked``: the partitions that they may be of. Raises the answer's error, BadAnswer."""
    results = answer_of(data, LARGEST, lambda answer: [_result(row) for row in answer["results"]])
    strangers = {each.key for each in results} - set(asked)
    if strangers:
        raise BadAnswer(f"it is of {len(strangers)} partitions that the window does not have")
    return results


def answer_of(data: bytes, largest: int, make: Callable[[Any], Made]) -> Made:
    """What is made of an answer of at most ``largest`` bytes. Raises the answer's error, BadAnswer."""
    if len(data) > largest:
        raise BadAnswer(f"it has {len(data):,} bytes")
    try:
        answer = json.loads(data)
        if "error" in answer:
            raise error_of(answer["error"])
        return make(answer)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise BadAnswer(f"it makes no sense ({type(error).__name__})") from error


def _result(row: Any) -> SlotResult:
    own: dict[str, Any] = {
        "outcome": Outcome(row["outcome"]),
        "error": None if row["error"] is None else error_of(row["error"]),
    }
    return SlotResult(**own, **{name: fit(row[name], kind) for name, kind in _PLAIN.items()})


def plain_error(error: AirmirrorError) -> dict[str, Any]:
    """An error for JSON, of which ``error_of`` makes it again."""
    facts = {field.name: getattr(error, field.name) for field in fields(error)}
    # One that has a mapping is no slot's result, but a part of one.
    if any(isinstance(fact, Mapping) for fact in facts.values()):
        facts = {}
    return {"name": _name(type(error)), "facts": facts, "text": str(error), "transient": error.transient}


def error_of(plain: Any) -> AirmirrorError:
    """One of the library's errors with its facts; one of another name, or with other facts, as its text."""
    import airmirror.slot.attempts  # noqa: F401  (with it all errors that a slot has)

    kind = {_name(each): each for each in _kinds(AirmirrorError)}.get(plain["name"])
    if kind is not None:
        hints = get_type_hints(kind)
        try:
            facts = {field.name: fit(plain["facts"][field.name], hints[field.name]) for field in fields(kind)}
        except (TypeError, LookupError):
            facts = {}
        if len(facts) == len(fields(kind)):
            error = kind.__new__(kind)
            error.__dict__.update(facts)
            return error
    return SlotError(fit(plain["text"], str), bool(plain["transient"]))


def fit(value: Any, kind: Any) -> Any:
    """The value, if it is of the kind. Raises TypeError."""
    if kind is TopicPartition and isinstance(value, list) and len(value) == 2:
        return TopicPartition(fit(value[0], str), fit(value[1], int))
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(fit(each, get_args(kind)[0]) for each in value)
    if kind is float and type(value) in (int, float):
        return float(value)
    if kind is str and isinstance(value, str):
        return value[:LONGEST]
    if kind in (int, bool) and type(value) is kind:
        return value
    raise TypeError(f"no {kind}")


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _kinds(kind: type[AirmirrorError]) -> Iterator[type[AirmirrorError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _kinds(each)

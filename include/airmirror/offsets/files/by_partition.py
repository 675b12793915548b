"""Offsets as ``{"orders": {"0": 42}}``: what Spark's Kafka source writes, and takes as ``startingOffsets``."""

from __future__ import annotations

from typing import Any

from airmirror.offsets.files.model import Answers, BadPositions, Position, position


def is_by_partition(value: Any) -> bool:
    """Return whether a JSON value has this form: objects of whole numbers below topics."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            isinstance(offsets, dict) and bool(offsets) and all(number.isdecimal() for number in offsets)
            for offsets in value.values()
        )
    )


def positions(path: str, place: str, value: dict[str, dict[str, Any]]) -> list[Position]:
    """Every offset in it. Raises BadPositions."""
    return [
        position(path, place, topic, number, offset)
        for topic, found in value.items()
        for number, offset in found.items()
    ]


def rewritten(path: str, place: str, value: dict[str, dict[str, Any]], answers: Answers) -> dict[str, dict[str, int]]:
    """The same with the other cluster's topics and offsets. Raises BadPositions where two topics become one."""
    found: dict[str, dict[str, int]] = {}
    for each in positions(path, place, value):
        there = answers[each]
        offsets = found.setdefault(there.topic, {})
        if str(each.partition) in offsets:
            raise BadPositions(path, f"{there.topic}-{each.partition} would be in it twice: two topics have become one")
        offsets[str(each.partition)] = there.offset
    return found

"""Positions in JSON of no particular tool: a list of objects, or offsets below partitions below topics."""

from __future__ import annotations

from typing import Any

from airmirror.offsets.files.json_texts import indented
from airmirror.offsets.files.model import Answers, BadPositions, Position, PositionFile, checked, position


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


def positions_of(path: str, place: str, value: dict[str, dict[str, Any]]) -> list[Position]:
    """Every offset in it. Raises BadPositions."""
    return [
        position(path, place, topic, number, offset)
        for topic, found in value.items()
        for number, offset in found.items()
    ]


def rewritten(path: str, place: str, value: dict[str, dict[str, Any]], answers: Answers) -> dict[str, dict[str, int]]:
    """The same with the other cluster's topics and offsets. Raises BadPositions where two topics become one."""
    found: dict[str, dict[str, int]] = {}
    for each in positions_of(path, place, value):
        there = answers[each]
        offsets = found.setdefault(there.topic, {})
        if str(each.partition) in offsets:
            raise BadPositions(path, f"{there.topic}-{each.partition} would be in it twice: two topics have become one")
        offsets[str(each.partition)] = there.offset
    return found


_NEEDED = ("topic", "partition", "offset")


def read_list(path: str, value: list[Any]) -> PositionFile:
    """``[{"topic": "orders", "partition": 0, "offset": 42}]``; other keys stay, ``exact`` is added. Raises BadPositions."""
    found = []
    for row in value:
        if not isinstance(row, dict) or not row.keys() >= set(_NEEDED):
            raise BadPositions(path, f"an entry without {', '.join(_NEEDED)}: {row!r:.100}")
        group = row.get("group", "")
        found.append(position(path, f"group {group}" if group else "", *(row[name] for name in _NEEDED)))
    positions = checked(path, found)

    def texts(answers: Answers) -> dict[str, str]:
        rows = []
        for row, each in zip(value, positions, strict=True):
            there = answers[each]
            rows.append(row | {"topic": there.topic, "offset": there.offset, "exact": there.exact})
        return {"": indented(rows)}

    return PositionFile("list of positions", positions, texts)


def read_by_partition(path: str, value: dict[str, Any]) -> PositionFile:
    """``{"orders": {"0": 42}}``, Spark's ``startingOffsets``. Raises BadPositions."""
    positions = checked(path, positions_of(path, "", value))
    return PositionFile(
        "offsets by topic and partition", positions, lambda answers: {"": indented(rewritten(path, "", value, answers))}
    )

"""Positions in JSON of no particular tool: a list of objects, or offsets below partitions below topics."""

from __future__ import annotations

from typing import Any

from airmirror.offsets.files import by_partition
from airmirror.offsets.files.json_texts import indented
from airmirror.offsets.files.model import Answers, BadPositions, PositionFile, checked, position

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
    positions = checked(path, by_partition.positions(path, "", value))
    return PositionFile(
        "offsets by topic and partition",
        positions,
        lambda answers: {"": indented(by_partition.rewritten(path, "", value, answers))},
    )

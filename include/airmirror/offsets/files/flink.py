"""Flink's ``scan.startup.specific-offsets``: the value alone, or tables' options in JSON (a compiled plan has them too)."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

from airmirror.offsets.files.json_texts import indented
from airmirror.offsets.files.model import Answers, BadPositions, Position, PositionFile, checked, position

TOPIC, OFFSETS = "topic", "scan.startup.specific-offsets"
_ONE = re.compile(r"\s*partition\s*:\s*(\d{1,10})\s*,\s*offset\s*:\s*(-?\d{1,19})\s*", re.ASCII)


def is_text(text: str) -> bool:
    """Return whether a text begins as the value does."""
    return _ONE.fullmatch(text.split(";", 1)[0]) is not None


def read_text(path: str, text: str, topic: str) -> PositionFile:
    """The value alone, which does not name the topic. Raises BadPositions."""
    if not topic:
        raise BadPositions(path, "these offsets do not say of which topic they are: give --topic")
    found = checked(path, list(_positions(path, "", topic, text)))
    return PositionFile("Flink offsets", found, lambda answers: {"": _written(found, answers) + "\n"})


def tables(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the options of every table in JSON that has specific offsets, with their place (``$.nodes[0].…``)."""
    open_: list[tuple[str, Any]] = [("$", value)]
    while open_:
        place, each = open_.pop()
        if isinstance(each, dict):
            if isinstance(each.get(OFFSETS), str):
                yield place, each
            open_ += [(f"{place}.{name}", inner) for name, inner in reversed(each.items())]
        elif isinstance(each, list):
            open_ += [(f"{place}[{number}]", inner) for number, inner in reversed(list(enumerate(each)))]


def read_json(path: str, value: Any) -> PositionFile:
    """Every table's offsets, of the topic that its options name. Raises BadPositions."""
    found: list[tuple[Position, ...]] = []
    for place, options in tables(value):
        topic = options.get(TOPIC)
        if not isinstance(topic, str) or ";" in topic:
            raise BadPositions(path, f"{place}: specific offsets need one topic, not {topic!r:.100}")
        found.append(tuple(_positions(path, place, topic, options[OFFSETS])))

    def texts(answers: Answers) -> dict[str, str]:
        made = copy.deepcopy(value)
        for (_, options), positions in zip(tables(made), found, strict=True):
            options |= {OFFSETS: _written(positions, answers), TOPIC: answers[positions[0]].topic}
        return {"": indented(made)}

    return PositionFile("Flink table options", checked(path, [each for many in found for each in many]), texts)


def _positions(path: str, place: str, topic: str, text: str) -> Iterator[Position]:
    for part in text.strip().removesuffix(";").split(";"):
        match = _ONE.fullmatch(part)
        if match is None:
            raise BadPositions(path, f"{part!r:.100} is not of the form partition:0,offset:42")
        yield position(path, place, topic, match[1], match[2])


def _written(positions: tuple[Position, ...], answers: Answers) -> str:
    return ";".join(f"partition:{each.partition},offset:{answers[each].offset}" for each in positions)

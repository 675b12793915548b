"""Kafka Connect's offsets as its REST API gives and takes them (KIP-875): ``{"offsets": [{"partition": …, "offset": …}]}``.

A sink connector's are the next offsets to read. Of source connectors only MirrorMaker 2's read Kafka; theirs are the last
offsets that were copied, and name their cluster. What another source connector has read of the outside stays as it is.
"""

from __future__ import annotations

from typing import Any

from airmirror.offsets.files.json_texts import indented
from airmirror.offsets.files.model import Answers, BadPositions, Position, PositionFile, checked, position, whole

OFFSETS = "offsets"
_SINK, _MIRROR = {"kafka_topic", "kafka_partition"}, {"cluster", "topic", "partition"}
SINK_OFFSET, MIRROR_OFFSET = "kafka_offset", "offset"


def is_offsets(value: Any) -> bool:
    """Return whether a JSON value is an answer of Connect about offsets."""
    return isinstance(value, dict) and isinstance(value.get(OFFSETS), list)


def read(path: str, value: dict[str, Any], source: str, target: str) -> PositionFile:
    """The positions on cluster ``source``; MirrorMaker 2's will be of ``target``. Raises BadPositions."""
    rows: list[tuple[dict[str, Any], Position | None]] = []
    kept = 0
    for row in value[OFFSETS]:
        if not isinstance(row, dict) or not isinstance(row.get("partition"), dict) or "offset" not in row:
            raise BadPositions(path, f"an entry without partition and offset: {row!r:.100}")
        found = _position(path, row["partition"], row["offset"], source)
        kept += found is None
        rows.append((row, found))

    def texts(answers: Answers) -> dict[str, str]:
        written = [
            row if found is None else _row(row, answers[found].topic, answers[found].offset, target)
            for row, found in rows
        ]
        return {"": indented(value | {OFFSETS: written})}

    positions = checked(path, [found for _, found in rows if found])
    said = (f"{kept} offsets of a source connector that are no positions in Kafka",) if kept else ()
    return PositionFile("Connect offsets", positions, texts, said)


def _position(path: str, partition: dict[str, Any], offset: Any, source: str) -> Position | None:
    """The position of an entry; None where it is none of Kafka's, or has been reset (``null``)."""
    if partition.keys() >= _SINK:
        if offset is None:
            return None
        at = offset.get(SINK_OFFSET) if isinstance(offset, dict) else offset
        return position(path, "", partition["kafka_topic"], partition["kafka_partition"], at)
    if partition.keys() == _MIRROR:
        if partition["cluster"] != source:
            named = partition["cluster"]
            raise BadPositions(
                path, f"these are offsets on cluster {named!r:.100}, and the flow's source is {source!r}"
            )
        if offset is None:
            return None
        last = whole(offset.get(MIRROR_OFFSET) if isinstance(offset, dict) else None)
        at = offset if last is None or last < 0 else last + 1
        return position(path, "", partition["topic"], partition["partition"], at)
    return None


def _row(row: dict[str, Any], topic: str, offset: int, target: str) -> dict[str, Any]:
    partition = row["partition"]
    if partition.keys() >= _SINK:
        return row | {"partition": partition | {"kafka_topic": topic}, "offset": {SINK_OFFSET: offset}}
    last = {MIRROR_OFFSET: offset - 1} if offset else None  # nothing was copied yet: such an offset is reset
    return row | {"partition": partition | {"cluster": target, "topic": topic}, "offset": last}

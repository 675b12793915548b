"""The format of a file of positions, found by what is in it."""

from __future__ import annotations

from pathlib import Path

from airmirror.offsets.files import connect, flink, groups_csv, plain, spark
from airmirror.offsets.files.json_texts import parsed
from airmirror.offsets.files.model import MOST_BYTES, BadPositions, PositionFile


def read(path: Path, source: str, target: str, topic: str = "") -> PositionFile:
    """The positions in a file or a checkpoint directory, on cluster ``source``; ``topic`` for what does not name it.

    Raises BadPositions.
    """
    if path.is_dir():
        return spark.read(path)
    name = str(path)
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise BadPositions(name, f"it is larger than {MOST_BYTES >> 20} MiB")
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise BadPositions(name, f"it can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadPositions(name, f"it is no text: {error}") from error
    return _read_text(name, text, source, target, topic)


def _read_text(name: str, text: str, source: str, target: str, topic: str) -> PositionFile:
    if not text.strip():
        raise BadPositions(name, "it is empty")
    if text.lstrip()[0] not in "{[":
        return flink.read_text(name, text, topic) if flink.is_text(text) else groups_csv.read(name, text)
    value = parsed(name, text)
    if connect.is_offsets(value):
        return connect.read(name, value, source, target)
    if any(True for _ in flink.tables(value)):
        return flink.read_json(name, value)
    if isinstance(value, list):
        return plain.read_list(name, value)
    if plain.is_by_partition(value):
        return plain.read_by_partition(name, value)
    raise BadPositions(name, "this JSON holds no positions in a form that is known")

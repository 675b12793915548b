"""The format of a file of positions, found by what is in it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from airmirror.offsets.files import connect, flink, plain, spark
from airmirror.offsets.files.json_texts import parsed
from airmirror.offsets.files.model import MOST_BYTES, Answers, BadPositions, PositionFile, checked, position


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
        return flink.read_text(name, text, topic) if flink.is_text(text) else _read_csv(name, text)
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


def _read_csv(path: str, text: str) -> PositionFile:
    """CSV without a heading, which ``kafka-consumer-groups.sh --reset-offsets`` exports, and takes by ``--from-file``.

    The columns are topic, partition and offset; where several groups are reset at once the group comes before them.
    """
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text), strict=True) if row]
    except csv.Error as error:
        raise BadPositions(path, f"it is no CSV: {error}") from error
    widths = {len(row) for row in rows}
    if widths not in ({3}, {4}):
        said = "it is neither JSON, nor Flink's offsets, nor CSV with the columns [group,] topic, partition, offset"
        raise BadPositions(path, said)
    found = []
    for row in rows:
        *group, topic, partition, offset = row
        found.append(position(path, f"group {group[0]}" if group else "", topic, partition, offset))
    positions = checked(path, found)

    def texts(answers: Answers) -> dict[str, str]:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        for row, each in zip(rows, positions, strict=True):
            writer.writerow([*row[:-3], answers[each].topic, each.partition, answers[each].offset])
        return {"": out.getvalue()}

    return PositionFile("CSV of kafka-consumer-groups.sh", positions, texts)

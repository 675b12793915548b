"""CSV without a heading, which ``kafka-consumer-groups.sh --reset-offsets`` exports, and takes by ``--from-file``.

The columns are topic, partition and offset; where several groups are reset at once the group comes before them.
"""

from __future__ import annotations

import csv
import io

from airmirror.offsets.files.model import Answers, BadPositions, PositionFile, checked, position


def read(path: str, text: str) -> PositionFile:
    """The positions of a CSV. Raises BadPositions."""
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

"""``airmirror translate --from FILE --to FILE``: the positions in a file of another tool, for the target of a flow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airmirror.clusters.protocol.groups import Committed
from airmirror.errors import AirmirrorError, command, listed
from airmirror.flows.prepare import Opened, caught_up
from airmirror.offsets.files.model import Answers, Position, PositionFile, PositionThere
from airmirror.offsets.files.reading import read
from airmirror.offsets.files.writing import refuse_existing, write
from airmirror.offsets.positions import GroupPosition, positions_of
from airmirror.offsets.translation import Reason, Translated
from airmirror.partitions import TopicPartition
from airmirror.rows import row_of
from airmirror.windows.mirror import Mirror

MOST_NAMED = 20


class PositionsNotTranslated(AirmirrorError):
    """Positions of a file that are not known on the target; ``reasons`` names each. Nothing was written."""

    flow: str
    path: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.path}: {len(self.reasons)} of its positions are not known on the target of {self.flow!r}, and nothing "
            f"was written:\n{listed(self.reasons, MOST_NAMED)}\ndocs/groups.md says what to do for each reason; what is not "
            f"yet verified comes with the next window: {command('run-window', flow=self.flow)}"
        )


@dataclass(frozen=True)
class FileTranslation:
    """A file that was translated: its format, what of it stays as it is, and where each of its positions is on the target."""

    format: str
    kept: tuple[str, ...]
    answers: Answers

    def rows(self) -> list[dict[str, Any]]:
        """One a position, in the order of the file. Offsets are the next ones to read."""
        return [
            row_of(position, "place topic partition position=offset")
            | row_of(there, "remote_topic=topic translation=offset exact")
            for position, there in self.answers.items()
        ]


def translate_file(opened: Opened, path: Path, to: Path, topic: str = "") -> FileTranslation:
    """Read ``path``, translate every position in it exactly, write ``to``: all, or nothing at all.

    ``topic``: what the positions are of, where the format does not say. Raises BadPositions, PositionsNotTranslated,
    PositionsNotWritten, and what the clusters raise.
    """
    refuse_existing(to)
    document = read(path, opened.flow.source.alias, opened.flow.target.alias, topic)
    opened = caught_up(opened)
    answers = _answers(opened, str(path), document)
    write(document, answers, to)
    return FileTranslation(document.format, document.kept, answers)


def _answers(opened: Opened, path: str, document: PositionFile) -> dict[Position, PositionThere]:
    asked: dict[str, dict[TopicPartition, Committed]] = {}
    for each in document.positions:
        asked.setdefault(each.place, {})[each.key] = Committed(each.offset)
    with Mirror.open(opened.flow, opened.ledger, "translate") as mirror:
        rows = positions_of(mirror, asked) if asked else []
    found = {(row.group, row.key): row for row in rows}
    if reasons := tuple(_reasons(document.positions, found)):
        raise PositionsNotTranslated(opened.flow.name, path, reasons)
    answers = {}
    for each in document.positions:
        row = found[each.place, each.key]
        assert isinstance(row.found, Translated)
        answers[each] = PositionThere(row.remote_topic, row.found.translation, row.found.exact)
    return answers


def _reasons(asked: Sequence[Position], found: dict[tuple[str, TopicPartition], GroupPosition]) -> Iterator[str]:
    """Yield the positions that are not exact: a group may read records again, whoever reads a file does not expect it."""
    for each in asked:
        row = found[each.place, each.key]
        if isinstance(row.found, Reason):
            reason = row.found
        elif row.found.again:
            reason = Reason.NOT_VERIFIED
        elif row.target is not None and row.found.translation < row.target.start:
            reason = Reason.BELOW_START
        else:
            continue
        yield f"{each}: {reason}"

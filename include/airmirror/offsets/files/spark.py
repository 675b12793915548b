"""Spark Structured Streaming's checkpoint: the write-ahead log of offsets, a directory.

``offsets/<batch>`` is text: a version, a line of the query's own, and a line for each source, "-" where it had nothing. Of it
Spark reads the newest batch and the one before when a query starts again; older ones are history, and are left out of the
copy, with their commits. ``sources/<number>/0`` has where a Kafka source began; it counts while batch 0 does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from airmirror.offsets.files import plain
from airmirror.offsets.files.json_texts import compact, parsed
from airmirror.offsets.files.model import MOST_BYTES, Answers, BadPositions, Position, PositionFile, checked

OFFSETS, COMMITS, SOURCES, METADATA = "offsets", "commits", "sources", "metadata"
_VERSION, _NOTHING = "v1", "-"
_KEPT = 2  # batches
_MOST_BATCHES = 1_000_000


@dataclass(frozen=True)
class _Batch:
    """One file of the log, taken apart; ``sources`` by number: the offsets of those that are Kafka's."""

    number: int
    lines: tuple[str, ...]
    sources: dict[int, dict[str, Any]]


def read(directory: Path) -> PositionFile:
    """The positions of a checkpoint directory. Raises BadPositions."""
    path = str(directory)
    for each in directory.rglob("*"):
        if each.is_symlink():
            raise BadPositions(
                path, f"{each.relative_to(directory)} is a symbolic link; copy the checkpoint without any"
            )
    numbers = _numbers(directory / OFFSETS)
    if not numbers or not (directory / METADATA).is_file():
        raise BadPositions(
            path, f"it is no checkpoint of a query that has begun: it needs {METADATA} and {OFFSETS}/0 …"
        )
    if len(numbers) > 1 and numbers[-1] - numbers[-2] != 1:
        raise BadPositions(path, f"{OFFSETS}/{numbers[-1] - 1} is missing, which Spark needs too")
    commits = _numbers(directory / COMMITS)
    if commits and not numbers[-1] - 1 <= commits[-1] <= numbers[-1]:
        raise BadPositions(
            path, f"{COMMITS}/{commits[-1]} does not go with {OFFSETS}/{numbers[-1]}: is the query running?"
        )
    batches = [_batch(directory, number) for number in numbers[-_KEPT:]]
    begun = _begun(directory, batches[0]) if batches[0].number == 0 else {}
    found: list[Position] = []
    for number, offsets in begun.items():
        found += plain.positions_of(path, _beginning(number), offsets)
    for batch in batches:
        for number, offsets in batch.sources.items():
            found += plain.positions_of(path, _place(batch, number), offsets)
    if not found:
        raise BadPositions(path, "none of the query's sources is Kafka")
    lines = len(batches[-1].lines) - 2
    kafka = {number for batch in batches for number in batch.sources}
    others = tuple(f"source {number}, which is not Kafka" for number in range(lines) if number not in kafka)

    texts = partial(_texts, path, batches, begun)
    return PositionFile(
        "Spark checkpoint", checked(path, found), texts, others, directory, _left_out(directory, batches)
    )


def _texts(path: str, batches: list[_Batch], begun: dict[int, dict[str, Any]], answers: Answers) -> dict[str, str]:
    files: dict[str, str] = {}
    first: dict[int, str] = {}  # by source: where the first batch that is kept has it
    for batch in batches:
        lines = list(batch.lines)
        for number, offsets in batch.sources.items():
            lines[number + 2] = compact(plain.rewritten(path, _place(batch, number), offsets, answers))
            first.setdefault(number, lines[number + 2])
        files[f"{OFFSETS}/{batch.number}"] = "\n".join(lines)
    for number, line in first.items():
        if number in begun:
            line = compact(plain.rewritten(path, _beginning(number), begun[number], answers))
        # Spark 2.1.0 wanted a byte before the version; all later ones write it. Without batch 0 the offsets are not read.
        files[f"{SOURCES}/{number}/0"] = f"\0{_VERSION}\n{line}"
    return files


def _left_out(directory: Path, batches: list[_Batch]) -> tuple[str, ...]:
    """Older batches and their commits, and what was written again: with their checksums, which do not fit any more."""
    kept = {batch.number for batch in batches}
    old = [f"{COMMITS}/{number}" for number in _numbers(directory / COMMITS) if number not in kept]
    checksums = [f"{each.rpartition('/')[0]}/.{each.rpartition('/')[2]}.crc" for each in old]
    sources = {number for batch in batches for number in batch.sources}
    return (OFFSETS, *old, *checksums, *(f"{SOURCES}/{number}" for number in sorted(sources)))


def _begun(directory: Path, first: _Batch) -> dict[int, dict[str, Any]]:
    """Return where the Kafka sources of batch 0 began, by number."""
    found = {}
    for number in first.sources:
        file = directory / SOURCES / str(number) / "0"
        lines = _text(file).removeprefix("\0").splitlines()
        if len(lines) != 2 or lines[0] != _VERSION:
            raise BadPositions(str(file), "it is not where a Kafka source began, as Spark writes it (v1)")
        found[number] = parsed(str(file), lines[1])
        if not plain.is_by_partition(found[number]):
            raise BadPositions(str(file), "these are no offsets of Kafka")
    return found


def _batch(directory: Path, number: int) -> _Batch:
    file = directory / OFFSETS / str(number)
    lines = tuple(_text(file).split("\n"))
    if lines[0] != _VERSION or len(lines) < 3:
        raise BadPositions(
            str(file), f"version {lines[0]!r:.20} of Spark's log of offsets is not known ({_VERSION} is)"
        )
    sources = {}
    for at, line in enumerate(lines[2:]):
        if line in ("", _NOTHING):
            continue
        value = parsed(str(file), line)
        if plain.is_by_partition(value):
            sources[at] = value
    return _Batch(number, lines, sources)


def _numbers(directory: Path) -> list[int]:
    """The numbers of a log's batches, in order."""
    if not directory.is_dir():
        return []
    found = sorted(int(each.name) for each in directory.iterdir() if each.name.isascii() and each.name.isdecimal())
    if len(found) > _MOST_BATCHES:
        raise BadPositions(str(directory), f"it holds more than {_MOST_BATCHES:,} batches")
    return found


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > MOST_BYTES:
            raise BadPositions(str(file), f"it is larger than {MOST_BYTES >> 20} MiB")
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadPositions(str(file), f"it can't be read: {getattr(error, 'strerror', None) or error}") from error


def _place(batch: _Batch, number: int) -> str:
    return f"batch {batch.number}, source {number}"


def _beginning(number: int) -> str:
    return f"beginning of source {number}"

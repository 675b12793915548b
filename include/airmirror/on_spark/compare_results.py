"""The findings of a comparison's part as JSON: an executor's answer is data, not a pickle (as in results)."""

from __future__ import annotations

import json
from array import array
from base64 import b64decode, b64encode
from typing import Any

import numpy as np

from airmirror.evidence.found import MOST_NAMED, Difference, Findings, Kind
from airmirror.evidence.mapped import Mapped
from airmirror.evidence.open_records import Open
from airmirror.on_spark.results import answer_of, fit
from airmirror.wire.records import Array

LARGEST = 1 << 28  # bytes of one part's answer
RANGE_COLUMNS = ("source", "target", "counts")


def encode(answer: Findings) -> bytes:
    found = {
        "counts": {str(kind): count for kind, count in answer.counts.items()},
        "differences": [
            [str(each.kind), each.source_offset, each.target_offset, each.count, list(each.parts)]
            for each in answer.differences
        ],
        "ranges": [_text(getattr(answer.ranges, name)) for name in RANGE_COLUMNS],
        "ranges_are_cut": answer.ranges.is_cut,
        "keeps_offsets": answer.keeps_offsets,
        "missing": _open_plain(answer.missing),
        "extra": _open_plain(answer.extra),
        "first_pair": answer.first_pair,
        "last_pair": answer.last_pair,
    }
    return json.dumps({"found": found}).encode()


def decode(data: bytes) -> Findings:
    """The findings. Raises the answer's error, BadAnswer."""
    return answer_of(data, LARGEST, lambda answer: _findings(answer["found"]))


def _findings(plain: Any) -> Findings:
    first_pair = plain["first_pair"]
    found = Findings(
        differences=[_difference(*each) for each in plain["differences"][:MOST_NAMED]],
        ranges=_mapped(plain["ranges"], plain["ranges_are_cut"]),
        keeps_offsets=fit(plain["keeps_offsets"], bool),
        missing=_open(plain["missing"]),
        extra=_open(plain["extra"]),
        first_pair=None if first_pair is None else _numbers(first_pair, 2),
        last_pair=_numbers(plain["last_pair"], 2),
    )
    found.counts.update({Kind(kind): fit(count, int) for kind, count in plain["counts"].items()})
    return found


def _difference(kind: Any, source: Any, target: Any, count: Any, parts: Any) -> Difference:
    source, target, count = _numbers([source, target, count], 3)
    return Difference(Kind(kind), source, target, count, tuple(fit(part, str) for part in parts))


def _open_plain(records: Open) -> list[Any]:
    marks, offsets = records.marked.records()
    return [_text(marks), _text(offsets), records.passed, records.most]


def _open(plain: Any) -> Open:
    marks, offsets, passed, most = plain
    found = Open(fit(most, int), passed=[_numbers(each, 3) for each in passed])
    its, places = _array(marks, np.uint64), _array(offsets, np.int64)
    if len(its) != len(places):
        raise ValueError("marks without offsets")
    found.add(its, places)
    return found


def _mapped(columns: Any, is_cut: Any) -> Mapped:
    source, target, counts = (_array(column, np.int64) for column in columns)
    if not len(source) == len(target) == len(counts):
        raise ValueError("runs that are cut off")
    found = Mapped(most=len(counts))
    found.add(source, target, counts)
    found.is_cut = fit(is_cut, bool)
    return found


def _text(numbers: Array | array[int]) -> str:
    return b64encode(numbers.tobytes()).decode()


def _array(text: Any, kind: type[np.generic]) -> Array:
    return np.frombuffer(b64decode(fit(text, str), validate=True), kind)


def _numbers(plain: Any, count: int) -> Any:
    """A tuple of this many whole numbers. Raises TypeError."""
    if len(plain) != count:
        raise TypeError(f"{len(plain)} numbers")
    return tuple(fit(each, int) for each in plain)

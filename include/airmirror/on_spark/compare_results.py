"""The findings of a comparison's part as JSON: an executor's answer is data, not a pickle (as in results)."""

from __future__ import annotations

import json
from typing import Any

from airmirror.errors import AirmirrorError
from airmirror.evidence.found import MOST_NAMED, Difference, Findings, Kind
from airmirror.on_spark.results import answer_of, fit, plain_error
from airmirror.wire.segments import Segment

LARGEST = 1 << 28  # bytes of one part's answer
Marks = dict[int, list[int]]


def encode(answer: Findings | AirmirrorError) -> bytes:
    """What was found of a part, or the error for which it could not be compared."""
    if isinstance(answer, AirmirrorError):
        return json.dumps({"error": plain_error(answer)}).encode()
    found = {
        "counts": {str(kind): count for kind, count in answer.counts.items()},
        "differences": [
            [str(each.kind), each.source_offset, each.target_offset, each.count, list(each.parts)]
            for each in answer.differences
        ],
        "segments": [[run.source_first, run.target_first, run.count] for run in answer.segments],
        "keeps_offsets": answer.keeps_offsets,
        "missing": list(answer.missing.items()),
        "extra": list(answer.extra.items()),
        "first_pair": answer.first_pair,
        "last_pair": answer.last_pair,
    }
    return json.dumps({"found": found}).encode()


def decode(data: bytes) -> Findings:
    """What was found. Raises the answer's error, BadAnswer."""
    return answer_of(data, LARGEST, lambda answer: _findings(**answer["found"]))


def _findings(
    *,
    counts: Any,
    differences: Any,
    segments: Any,
    keeps_offsets: Any,
    missing: Any,
    extra: Any,
    first_pair: Any,
    last_pair: Any,
) -> Findings:
    found = Findings(
        differences=[_difference(*each) for each in differences[:MOST_NAMED]],
        segments=[Segment(*_numbers(run, 3)) for run in segments],
        keeps_offsets=fit(keeps_offsets, bool),
        missing=_marks(missing),
        extra=_marks(extra),
        first_pair=None if first_pair is None else _pair(first_pair),
        last_pair=_pair(last_pair),
    )
    found.counts.update({Kind(kind): fit(count, int) for kind, count in counts.items()})
    return found


def _difference(kind: Any, source: Any, target: Any, count: Any, parts: Any) -> Difference:
    source, target, count = _numbers([source, target, count], 3)
    return Difference(Kind(kind), source, target, count, tuple(fit(part, str) for part in parts))


def _marks(plain: Any) -> Marks:
    return {fit(mark, int): [fit(offset, int) for offset in offsets] for mark, offsets in plain}


def _pair(plain: Any) -> tuple[int, int]:
    one, other = _numbers(plain, 2)
    return one, other


def _numbers(plain: Any, count: int) -> list[int]:
    if len(plain) != count:
        raise TypeError(f"{len(plain)} numbers")
    return [fit(each, int) for each in plain]

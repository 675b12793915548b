"""Comparing topics whose partitions differ in number: the records of each key, in their order, wherever they lie.

Marks only are kept, 24 bytes a record; where the records are more than fit, keys are taken in several passes, each of
which reads the logs again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xxhash

from airmirror.evidence.alignment import Marks, align
from airmirror.evidence.found import Findings, Kind
from airmirror.evidence.logs import Log, marks_of
from airmirror.wire.headers import parts_of

AT_ONCE = 4_000_000  # records of both sides in a pass
NO_KEY = b"\0no key"


def compare_by_key(source: Sequence[Log], target: Sequence[Log]) -> Findings:
    """Records of every key in their order, counted by kind; offsets are not named. Raises what reading the logs raises."""
    records = sum(log.end - log.start for log in (*source, *target))
    passes = max(1, -(-records // AT_ONCE))
    found = Findings(keeps_offsets=False)
    for number in range(passes):
        one, other = _sorted_by_key(source, number, passes), _sorted_by_key(target, number, passes)
        if np.array_equal(one, other):
            found.counts[Kind.EQUAL] += len(one)
            continue
        aligned = align(one, other)
        found.counts[Kind.EQUAL] += len(aligned.pairs)
        found.counts[Kind.REORDERED] += len(aligned.moved)
        found.counts[Kind.TWICE] += len(aligned.repeated)
        found.counts[Kind.MISSING] += len(aligned.missing)
        found.counts[Kind.EXTRA] += len(aligned.extra)
    return found


def _sorted_by_key(logs: Sequence[Log], number: int, passes: int) -> Marks:
    """The marks of the records whose key is of this pass, by key and then in the order of their log."""
    keys: list[Any] = []
    marks: list[Any] = []
    for log in logs:
        for records in log.records():
            of_records = np.array(list(map(_key_mark, records.bodies())), np.uint64)
            chosen = of_records % np.uint64(passes) == number
            keys.append(of_records[chosen])
            marks.append(marks_of(records)[chosen])
    if not keys:
        return np.empty(0, np.uint64)
    of_all = np.concatenate(keys)
    return np.asarray(np.concatenate(marks)[np.argsort(of_all, kind="stable")], np.uint64)


def _key_mark(body: bytes) -> int:
    key, value, _ = parts_of(body)
    # Without a key there is no order over partitions: each value is a key of its own.
    return xxhash.xxh3_64_intdigest(NO_KEY + (value or b"") if key is None else key)

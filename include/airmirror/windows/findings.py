"""The findings between a partition's verified offset and its progress, and the engine's own checks of them.

The gate judges these (invariant F): what a window's slots have read back before they committed is taken at its word,
everything else is read from the target now and compared with the digests of its mapping records, then with the source where
they differ.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any
from uuid import UUID

from airmirror.errors import AirmirrorError
from airmirror.partitions import CopyFacts, TopicPartition
from airmirror.slot.errors import of_flow
from airmirror.windows.compare import compare, is_on_target, look_at_logs
from airmirror.windows.coverage import COUNTS, account_error
from airmirror.windows.mirror import Mirror
from airmirror.wire.mappings import MappingRecord


@dataclass(frozen=True)
class GateRow(CopyFacts):
    """One partition's range ``[source_start, source_end)`` that no gate has let pass yet.

    Counts are of source offsets, ``target_records`` of records that the target holds for them; it and ``digest_differences``
    are None where the target was not read (``window.verify=acks``). ``lag_records`` is what the source has beyond
    ``source_end``, ``lag_seconds`` the age of the newest record copied where there is such a lag.
    """

    source_topic_id: UUID
    source_start: int
    source_end: int
    target_start: int
    target_end: int
    copied: int
    target_records: int | None
    control: int
    aborted: int
    holes: int
    unexpected_holes: int
    lost: int
    bytes: int
    gaps: int
    order_violations: int
    digest_differences: int | None
    lag_records: int
    lag_seconds: float
    max_timestamp: int
    error: AirmirrorError | None

    def row(self) -> dict[str, object]:
        """The finding as the gate's rows have it: plain values, one a column."""
        row = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "source_topic_id"}
        return row | {
            "offsets": self.source_end - self.source_start,
            "accounted": sum(getattr(self, name) for name in COUNTS),
            "error": None if self.error is None else str(self.error),
        }


def examine(
    mirror: Mirror,
    unverified: Iterable[MappingRecord],
    *,
    trusted: Container[str],
    compacted: Mapping[str, bool],
    watermarks: Mapping[TopicPartition, int],
) -> Iterator[GateRow]:
    """Yield one finding for every partition of these mapping records, which are ordered by partition and offset.

    ``trusted``: windows whose slots answer for what they committed. A slot that reads back has measured that the target
    holds every record as it was copied, or it would not have committed; under ``acks`` it has measured nothing.

    ``compacted``: whether topics may have holes (invariant E); of one that is gone by now its slot has judged. ``watermarks``:
    of the source, for the lag. A log that can't be read is the finding's error.
    """
    flow, index = mirror.flow, mirror.index
    known = index.verified()
    now = time.time() * 1000
    for key, group in groupby(unverified, key=lambda record: record.key):
        mappings = list(group)
        last = mappings[-1]
        passed = known.get(key)
        passed = passed if passed and passed.source_topic_id == last.source_topic_id else None
        start = passed.offset + 1 if passed else None
        allowed = compacted.get(key.topic, True)
        doubtful = [mapping for mapping in mappings if mapping.window not in trusted]
        missing, differences, error = _look_again(mirror, doubtful)
        is_measured = all(mapping.was_read_back for mapping in mappings if mapping.window in trusted)
        error = account_error(flow.source.alias, mappings, allowed, start) or error
        copied = [mapping for mapping in mappings if mapping.copied]
        counts: dict[str, Any] = {name: sum(getattr(mapping, name) for mapping in mappings) for name in COUNTS}
        lag = max(0, watermarks.get(key, last.source_end) - last.source_end)
        newest = max((mapping.max_timestamp for mapping in copied), default=-1)
        yield GateRow(
            topic=key.topic,
            partition=key.partition,
            remote_topic=last.remote_topic,
            source_topic_id=last.source_topic_id,
            source_start=mappings[0].source_start if start is None else start,
            source_end=last.source_end,
            target_start=copied[0].target_start if copied else last.target_start,
            target_end=copied[-1].target_end if copied else (passed or last).target_end,
            **counts,
            target_records=counts["copied"] - missing if is_measured else None,
            unexpected_holes=0 if allowed else counts["holes"],
            bytes=sum(mapping.size for mapping in mappings),
            gaps=_gaps(mappings, start),
            order_violations=_order_violations(copied),
            digest_differences=differences if is_measured else None,
            lag_records=lag,
            lag_seconds=max(0.0, (now - newest) / 1000) if lag and newest >= 0 else 0.0,
            max_timestamp=newest,
            error=of_flow(error, flow),
        )


def _look_again(mirror: Mirror, mappings: Sequence[MappingRecord]) -> tuple[int, int, AirmirrorError | None]:
    """Read the target, and the source where it differs: records missing, mapping records that differ, and what is wrong."""
    if not mappings:
        return 0, 0, None
    missing = differences = 0
    first: AirmirrorError | None = None
    try:
        mirror.target.refresh({mapping.remote_topic for mapping in mappings})
        differing = [mapping for mapping in mappings if not is_on_target(mirror.target, mapping)]
        if not differing:  # then the source is not needed, and may be gone
            return 0, 0, None
        logs = look_at_logs(mirror, differing)
        for mapping in differing:
            compared = compare(logs, mapping)
            if compared.error is not None:
                missing += max(0, mapping.copied - compared.gone - compared.on_target)
                differences += 1
                first = first or compared.error
    except AirmirrorError as error:
        return missing, differences, first or error
    return missing, differences, first


def _gaps(mappings: Sequence[MappingRecord], start: int | None) -> int:
    """Source offsets between ``start`` and the end that no mapping record covers, or that two cover."""
    ends = [mappings[0].source_start if start is None else start, *(mapping.source_end for mapping in mappings)]
    return sum(abs(mapping.source_start - end) for end, mapping in zip(ends, mappings, strict=False))


def _order_violations(copied: Sequence[MappingRecord]) -> int:
    """Runs of records that lie on the target before the run that precedes them on the source."""
    pairs = pairwise(run for record in copied for run in record.ranges)
    return sum(one.target_end > other.target_first or one.source_end > other.source_first for one, other in pairs)

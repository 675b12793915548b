"""The fate of records that only one side has, when both logs are read: moved, compacted, expired, still to come, or lost."""

from __future__ import annotations

from airmirror.evidence.compaction import superseded
from airmirror.evidence.found import Findings, Kind, take
from airmirror.evidence.logs import Log


def settled(found: Findings, source: Log, target: Log) -> Findings:
    """Settle what is open; ``source`` and ``target`` are the whole logs. Raises what reading them raises."""
    for mark in [mark for mark in found.extra if mark in found.missing]:
        while mark in found.missing and mark in found.extra:
            found.differs(Kind.REORDERED, take(found.missing, mark), take(found.extra, mark))
    missing = sorted(offset for offsets in found.missing.values() for offset in offsets)
    extra = sorted(offset for offsets in found.extra.values() for offset in offsets)
    taken = superseded(source, missing) if target.is_compacted else set()
    for offset in missing:
        found.differs(Kind.COMPACTED if offset in taken else _why_missing(found, target, offset), offset, -1)
    taken = superseded(target, extra) if source.is_compacted else set()
    for offset in extra:
        found.differs(Kind.COMPACTED if offset in taken else _why_extra(found, source, offset), -1, offset)
    named = sorted(found.differences, key=lambda each: (each.source_offset < 0, each.source_offset, each.target_offset))
    found.differences = []
    for each in named:
        found.name(each)
    return found


def _why_missing(found: Findings, target: Log, offset: int) -> Kind:
    log_start, first = target.log_start, found.first_pair
    if log_start > 0 and (offset < log_start if found.keeps_offsets else first is None or offset < first[0]):
        return Kind.EXPIRED
    return Kind.LAGGING if offset > found.last_pair[0] else Kind.MISSING


def _why_extra(found: Findings, source: Log, offset: int) -> Kind:
    first = found.first_pair
    is_before = first is None or offset < first[1]
    return Kind.EXPIRED if source.log_start > 0 and is_before else Kind.EXTRA

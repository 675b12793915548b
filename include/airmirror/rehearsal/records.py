"""The newest records of each partition, up to the recovery point, compared on both clusters as an audit compares them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from airmirror.failover.partitions import PartitionPoint
from airmirror.flows.audit import Audited, Range, audit
from airmirror.flows.prepare import Opened

Tell = Callable[[str], None]


def compare_newest(opened: Opened, partitions: Sequence[PartitionPoint], tell: Tell) -> list[Audited]:
    """Compare ``failover.rehearsal.records`` source offsets of each partition before what is not verified.

    What lies before the first replicated offset, or has expired on either side, is no difference. Raises what ``audit`` does.
    """
    most = opened.flow.settings.failover_rehearsal_records
    ranges = [
        Range(point.topic, point.partition, max(0, point.verified_end - most), point.verified_end)
        for point in partitions
        if point.verified_end and point.remote_topic
    ]
    if not ranges:
        return []
    return list(audit(opened, ranges, refuse_before=False, refuse_missing=True, tell=tell).partitions)

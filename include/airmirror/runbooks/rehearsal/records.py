"""The newest records of each partition, up to what is verified, compared on both clusters as an audit compares them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from airmirror.flows.audit import Audited, Range, audit
from airmirror.flows.prepare import Opened
from airmirror.partitions import TopicPartition

Tell = Callable[[str], None]


def compare_newest(opened: Opened, ends: Mapping[TopicPartition, int], most: int, tell: Tell) -> list[Audited]:
    """Compare ``most`` source offsets of each partition before ``ends``, where what is verified of it ends.

    What lies before the first replicated offset, or has expired on either side, is no difference. Raises what ``audit`` does.
    """
    ranges = [Range(*key, max(0, end - most), end) for key, end in sorted(ends.items()) if end]
    if not ranges:
        return []
    return list(audit(opened, ranges, refuse_before=False, refuse_missing=True, tell=tell).partitions)

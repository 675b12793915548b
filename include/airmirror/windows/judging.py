"""The judgement of what is committed and not verified yet: at the end of a window, and while one follows (invariant F)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Sequence
from dataclasses import dataclass

from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes, TopicNotFound
from airmirror.errors import AirmirrorError, counted
from airmirror.partitions import TopicPartition
from airmirror.windows.declared import compacted_topics
from airmirror.windows.fence import GrantedLease
from airmirror.windows.findings import GateRow, examine, key_of
from airmirror.windows.mirror import Mirror
from airmirror.windows.verify import Gate, Verdict, judge


@dataclass(frozen=True)
class Judged:
    """The rows shown to a gate, and its verdict, partition by partition."""

    findings: tuple[GateRow, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def errors(self) -> list[AirmirrorError]:
        return [verdict.error for verdict in self.verdicts if verdict.error is not None]


def judge_unverified(
    mirror: Mirror,
    granted: GrantedLease,
    gate: Gate | None,
    *,
    trusted: Container[str],
    left: Collection[TopicPartition] | None = None,
    tell: Callable[[str], None] = lambda phase: None,
) -> Judged:
    """Judge everything between verified offset and progress, as far as the index has read it, and write what comes of it.

    ``left``: partitions that are left to a later judgement, and stay as they are; None: none are, and what a gate holds
    without a reason any more is lifted. Raises a cluster's error.
    """
    index = mirror.index
    unverified = [record for record in index.unverified() if key_of(record) not in (left or ())]
    keys = list(dict.fromkeys(map(key_of, unverified)))
    topics = {key.topic for key in keys}
    topics -= mirror.source.refresh_existing(topics).keys()
    findings = examine(
        mirror,
        unverified,
        trusted=trusted,
        compacted=compacted_topics(mirror, topics),
        watermarks=watermarks(mirror.source, [key for key in keys if key.topic in topics]),
    )
    tell(f"judging {counted(len(findings), 'partition')}")
    verdicts = judge(granted, findings, gate, everything=left is None, own=trusted)
    mirror.catch_up()
    return Judged(tuple(findings), tuple(verdicts))


def watermarks(source: Routes, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """The high watermarks, for the lag that is left; none where a topic is gone by now."""
    try:
        return offsets_with_patience(source, partitions, LATEST)
    except TopicNotFound:
        return {}

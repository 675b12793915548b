"""``airmirror verify``: both logs are read again, and every record that both still hold is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from airmirror.clusters.log import EARLIEST, offsets_with_patience
from airmirror.clusters.routes import Routes
from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.windows.compare import compare
from airmirror.windows.declared import times_replaced
from airmirror.windows.errors import of_flow
from airmirror.wire.requests import TopicPartition
from airmirror.wire.segments import Segment, SegmentRecord


@dataclass(frozen=True)
class ComparedPartition:
    """One partition: records that were equal, that could no longer be compared, that are declared lost; what is wrong."""

    topic: str
    partition: int
    remote_topic: str
    records: int
    expired: int
    lost: int
    error: AirmirrorError | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "topic": self.topic, "partition": self.partition, "remote_topic": self.remote_topic,
            "records": self.records, "expired": self.expired, "lost": self.lost,
            "error": str(self.error) if self.error else None,
        }  # fmt: skip


def compare_all(opened: Opened, topics: Sequence[str]) -> list[ComparedPartition]:
    """Compare every replicated partition of ``topics`` (all, when empty). A transient error of a cluster is raised."""
    flow = opened.flow
    catch_up_ledger(opened)
    newest = opened.ledger.last_segments()
    chosen = {key: record for key, record in sorted(newest.items()) if not topics or key[0] in topics}
    rows = []
    timeless = times_replaced(flow)
    client = f"airmirror|{flow.name}|verify"
    with Routes(flow.source, client) as source, Routes(flow.target, client) as target:
        source.refresh({topic for topic, _ in chosen})
        target.refresh({record.remote_topic for record in chosen.values()})
        here = offsets_with_patience(source, [TopicPartition(*key) for key in chosen], EARLIEST)
        remote = {key: TopicPartition(record.remote_topic, record.partition) for key, record in chosen.items()}
        there = offsets_with_patience(target, remote.values(), EARLIEST)
        for key, last in chosen.items():
            first, target_first = here[TopicPartition(*key)], there[remote[key]]
            records = expired = lost = 0
            error: AirmirrorError | None = None
            for segment in opened.ledger.segments(*key, last.source_topic_id):
                part = still_held(segment, first, target_first)
                expired += segment.copied - part.copied
                lost += segment.lost
                if part.copied and error is None:
                    compared = compare(
                        source, target, part,
                        read_committed=flow.isolation_level == "read_committed", aggregate=flow.is_aggregate,
                        times=not timeless.matches(part.topic),
                    )  # fmt: skip
                    records += compared.records
                    error = compared.error
            error = of_flow(error, flow.name)
            rows.append(ComparedPartition(*key, last.remote_topic, records, expired, lost, error))
    return rows


def still_held(
    record: SegmentRecord, source_first: int, target_first: int, source_end: int | None = None
) -> SegmentRecord:
    """The part of a segment record above both logs' starts: retention works on the two sides independently.

    ``source_end``: and below this source offset.
    """
    end = record.source_end if source_end is None else min(source_end, record.source_end)
    if record.source_start >= source_first and record.target_start >= target_first and end == record.source_end:
        return record
    kept = []
    for segment in record.segments:
        skipped = max(0, source_first - segment.source_first, target_first - segment.target_first)
        count = min(segment.source_end, end) - segment.source_first - skipped
        if count > 0:
            kept.append(Segment(segment.source_first + skipped, segment.target_first + skipped, count))
    whole = end == record.source_end
    return replace(
        record,
        source_start=kept[0].source_first if kept else end,
        source_end=end,
        target_start=kept[0].target_first if kept else record.target_end,
        target_end=record.target_end if whole or not kept else kept[-1].target_end,
        copied=sum(segment.count for segment in kept),
        segments=tuple(kept),
    )

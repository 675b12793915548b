"""MirrorMaker 2's progress where the workers of a Connect cluster, or of Strimzi, keep it: read for a take-over, never written.

Keys and values are those of a dedicated MirrorMaker 2 (``wire.mirrormaker``), save that they begin with the connector's own
name. Connect reads a connector's own topic over that of its workers, so the last of ``takeover.offsets.topics`` counts. A
partition of which anything is known here has its position here (invariant A).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience, read_records
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.ledger.state import Key, State
from airmirror.partitions import TopicPartition
from airmirror.windows.mirror import Mirror
from airmirror.wire.mirrormaker import decode_source_offset
from airmirror.wire.primitives import MalformedRecord


@dataclass(eq=False)
class OffsetsTopicMissing(AirmirrorError):
    """A topic of ``takeover.offsets.topics`` that the target does not have."""

    flow: str
    cluster: str
    topic: str

    def __str__(self) -> str:
        return (
            f"flow {self.flow!r}: cluster {self.cluster!r} has no topic {self.topic!r} with the progress of MirrorMaker 2 "
            f"({self.flow}.takeover.offsets.topics): name the offset.storage.topic of the Connect workers that ran it, or "
            f"nothing where none has run"
        )


def with_connect_offsets(mirror: Mirror, state: State, topics: Collection[str]) -> State:
    """The state with the progress that Connect has of partitions of which nothing is known here.

    ``topics``: those of the flow on the source. Nothing is read where something is known of each partition. Raises
    OffsetsTopicMissing, or a cluster's error.
    """
    names, source = mirror.flow.settings.takeover_offsets_topics, mirror.source
    if not names:
        return state
    missing = source.refresh_existing(topics)
    there = (topic for topic in topics if topic not in missing)
    if all((topic, number) in state.positions for topic in there for number in range(source.partitions(topic))):
        return state
    found: dict[Key, int] = {}
    for name in names:
        found |= read_offsets(mirror.target, mirror.flow, name)
    return replace(state, progress={key: at for key, at in found.items() if key[0] in topics} | dict(state.progress))


def read_offsets(target: Routes, flow: Flow, topic: str) -> dict[Key, int]:
    """The last source offset that the flow's connector has copied, by partition; of two records of a key the later counts."""
    if target.refresh_existing([topic]):
        raise OffsetsTopicMissing(flow.name, flow.target.alias, topic)
    partitions = [TopicPartition(topic, number) for number in range(target.partitions(topic))]
    starts = offsets_with_patience(target, partitions, EARLIEST)
    ends = offsets_with_patience(target, partitions, LATEST)
    newest: dict[Key, tuple[int, int | None]] = {}
    for partition in partitions:
        for record in read_records(target, partition, starts[partition], ends[partition]):
            try:
                offset = decode_source_offset(record.key or b"", record.value, flow.settings.takeover_connector_name)
            except MalformedRecord:
                continue  # a connector of another kind
            if offset is not None and offset.cluster == flow.source.alias:
                key = (offset.topic, offset.partition)
                # A topic that was given more partitions has a key in two of them.
                if record.timestamp >= newest.get(key, (record.timestamp, None))[0]:
                    newest[key] = record.timestamp, offset.offset
    return {key: offset for key, (_, offset) in newest.items() if offset is not None}

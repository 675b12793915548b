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
from airmirror.ledger.state import State
from airmirror.naming import progress_topic
from airmirror.partitions import TopicPartition
from airmirror.windows.mirror import Mirror
from airmirror.wire.mirrormaker import SOURCE_CONNECTOR, decode_source_offset
from airmirror.wire.primitives import MalformedRecord


class OffsetsTopicMissing(AirmirrorError):
    """A topic of ``takeover.offsets.topics`` that the target does not have."""

    flow: str
    cluster: str
    topic: str
    says = (
        "flow {0.flow!r}: cluster {0.cluster!r} has no topic {0.topic!r} with the progress of MirrorMaker 2 "
        "({0.flow}.takeover.offsets.topics): name the offset.storage.topic of the Connect workers that ran it, or nothing "
        "where none has run"
    )


def with_connect_offsets(mirror: Mirror, state: State, topics: Collection[str]) -> State:
    """The state with the progress that Connect has of partitions of which nothing is known here; before the flow's first window,
    when nothing of it was read yet, with that of a dedicated MirrorMaker 2.

    ``topics``: those of the flow on the source. Nothing is read where something is known of each partition. Raises
    OffsetsTopicMissing, or a cluster's error.
    """
    source = mirror.source
    if state.scanned and not mirror.flow.settings.takeover_offsets_topics:
        return state  # a dedicated one's progress was read with ours
    if all(key in state.positions for key in source.keys_now(topics)):
        return state
    found = {key: recorded.offset for key, recorded in recorded_progress(mirror.target, mirror.flow).items()}
    return replace(state, progress={key: at for key, at in found.items() if key.topic in topics} | dict(state.progress))


@dataclass(frozen=True)
class Recorded:
    """The progress of a partition by MirrorMaker 2's account: the offset copied last, and when that was written."""

    offset: int
    time_ms: int


def read_progress(target: Routes, flow: Flow, topic: str, connector: str) -> dict[TopicPartition, Recorded]:
    """The progress of a connector in a topic that is there, by partition; of two records of a key the later counts."""
    partitions = target.keys([topic])
    starts = offsets_with_patience(target, partitions, EARLIEST)
    ends = offsets_with_patience(target, partitions, LATEST)
    newest: dict[TopicPartition, tuple[int, int | None]] = {}
    for partition in partitions:
        for record in read_records(target, partition, starts[partition], ends[partition]):
            try:
                offset = decode_source_offset(record.key or b"", record.value, connector)
            except MalformedRecord:
                continue  # a connector of another kind
            if offset is not None and offset.cluster == flow.source.alias:
                key = TopicPartition(offset.topic, offset.partition)
                # A topic that was given more partitions has a key in two of them.
                if record.timestamp >= newest.get(key, (record.timestamp, None))[0]:
                    newest[key] = record.timestamp, offset.offset
    return {key: Recorded(offset, at) for key, (at, offset) in newest.items() if offset is not None}


def progress_topics(flow: Flow) -> dict[str, str]:
    """The topics on the target in which MirrorMaker 2 keeps its progress, each with its connector's name; the last counts."""
    settings = flow.settings
    if settings.takeover_offsets_topics:
        return dict.fromkeys(settings.takeover_offsets_topics, settings.takeover_connector_name)
    return {progress_topic(flow.source.alias): SOURCE_CONNECTOR}


def recorded_progress(target: Routes, flow: Flow) -> dict[TopicPartition, Recorded]:
    """MirrorMaker 2's progress by its own account, of all partitions; of a dedicated one it is ours too, after a window.

    Raises OffsetsTopicMissing where the configuration names a topic that is not there.
    """
    found: dict[TopicPartition, Recorded] = {}
    for topic, connector in progress_topics(flow).items():
        if target.refresh_existing([topic]):
            if flow.settings.takeover_offsets_topics:
                raise OffsetsTopicMissing(flow.name, flow.target.alias, topic)
            continue
        found |= read_progress(target, flow, topic, connector)
    return found

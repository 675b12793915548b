"""MirrorMaker 2's checkpoints: where groups stand on both clusters, for its tools and clients to read.

Never past the verified offset (invariant F). Written, as MirrorMaker 2 does (MirrorCheckpointTask.java), where there is
none yet, where the group went back on the source, or where it went on on the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from airmirror.clusters.log import LATEST, offsets_with_patience, read_records
from airmirror.clusters.routes import Routes
from airmirror.config import Flow
from airmirror.config.values import as_boolean
from airmirror.ledger import FlowLedger
from airmirror.offsets.lags import note_group_lags
from airmirror.offsets.positions import GroupPosition, group_positions
from airmirror.offsets.translation import Translated
from airmirror.offsets.writing import ensure_topic, write_anew
from airmirror.topics.names import policy_of
from airmirror.windows.index import Entry
from airmirror.wire.checkpoints import Checkpoint
from airmirror.wire.requests import TopicPartition


def checkpoints_of(rows: Iterable[GroupPosition], last: Mapping[tuple[str, str, int], Checkpoint]) -> list[Checkpoint]:
    """Those of the translated positions that are to be written after the ``last`` of each key."""
    found = []
    for row in rows:
        if isinstance(row.found, Translated):
            new = Checkpoint(
                row.group, row.remote_topic, row.partition, row.found.position, row.found.translation,
                row.committed.metadata,
            )  # fmt: skip
            old = last.get(new.key)
            if old is None or new.upstream < old.upstream or new.downstream > old.downstream:
                found.append(new)
    return found


def emit_checkpoints(
    flow: Flow, ledger: FlowLedger, *, window: str, tell: Callable[[str], None] = lambda phase: None
) -> int:
    """Write the checkpoints of groups that have moved, in one transaction; how many. The ledger must have caught up.

    Raises FlowBusy, RecordsNotWritten, GroupsNotRead, TopicCreationRefused, or a cluster's error.
    """
    settings = flow.settings
    if not as_boolean(settings["emit.checkpoints.enabled"]):
        return 0
    topic = policy_of(flow).checkpoints_topic(flow.source.alias)
    client = f"airmirror|{flow.name}|checkpoints"
    with Routes(flow.source, client) as source, Routes(flow.target, client) as target:
        if target.refresh_existing([topic]):
            ensure_topic(flow.target, topic, int(settings["checkpoints.topic.replication.factor"]))
        rows = group_positions(flow, ledger, source, target)
        note_group_lags(flow.source.alias, ledger, rows)

        def records() -> list[tuple[bytes, bytes]]:
            load_checkpoints(target, topic, ledger)
            return [(new.encode_key(), new.encode_value()) for new in checkpoints_of(rows, ledger.checkpoints())]

        return write_anew(flow, ledger, flow.target, topic, "checkpoints", records, window=window, tell=tell)


def load_checkpoints(target: Routes, topic: str, ledger: FlowLedger) -> None:
    """Read the tail of the checkpoints topic into the ledger."""
    target.refresh([topic])
    partition, topic_id = TopicPartition(topic, 0), target.topic_ids[topic]
    end = offsets_with_patience(target, [partition], LATEST)[partition]
    start = ledger.scanned(topic, topic_id).get(0, 0)
    if start < end:
        read = read_records(target, partition, start, end)
        entries = [Entry(0, record.offset, record.timestamp, record.key, record.value) for record in read]
        ledger.load_checkpoints(topic, topic_id, entries, {0: end}, {0: start})

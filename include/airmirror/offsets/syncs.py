"""Offset syncs as MirrorMaker 2 writes them, from verified mapping records, so that its tools can still read them.

Never past the verified offset (invariant F), and never below the last upstream offset that was written: on one that is,
MirrorMaker 2's store forgets everything that it knows of the partition (OffsetSyncStore.java), which a reset is to bring
about.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping

from airmirror.clusters.protocol.log import LATEST, offsets_with_patience, read_records
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Cluster, Flow
from airmirror.ledger import FlowLedger
from airmirror.offsets.writing import Destination, load_written, write, write_anew
from airmirror.partitions import TopicPartition
from airmirror.tell import Tell, silent
from airmirror.topics.names import policy_of
from airmirror.windows.fence import HeldLease
from airmirror.wire.mappings import MappingRecord
from airmirror.wire.mirrormaker import OffsetSync
from airmirror.wire.primitives import MalformedRecord

log = logging.getLogger(__name__)


def choose(mappings: Iterable[MappingRecord], written: int, verified: int, most: int, lag_max: int) -> list[OffsetSync]:
    """The syncs to write for a partition's mapping records: source offsets above ``written``, up to ``verified``.

    The first and the last copied record of each mapping record, and at most ``most`` between: where a run of consecutive
    offsets begins, and within one every ``lag_max + 1`` records.
    """
    found: dict[int, OffsetSync] = {}
    for record in mappings:
        inside = [
            OffsetSync(record.topic, record.partition, upstream, downstream)
            for upstream, downstream in _points(record, lag_max, written, verified)
        ]
        if inside:
            between = inside[1:-1]
            step = max(1, -(-len(between) // most)) if most else 0
            chosen = [inside[0], *(between[::step] if step else ()), inside[-1]]
            found.update({sync.upstream: sync for sync in chosen})
    return [found[upstream] for upstream in sorted(found)]


def _points(record: MappingRecord, lag_max: int, written: int, verified: int) -> Iterator[tuple[int, int]]:
    for run in record.ranges:
        first = max(run.source_first, written + 1)
        last = min(run.source_end - 1, verified)
        if first <= last:
            moved = run.target_first - run.source_first
            stops = range(first, last, max(1, lag_max + 1))
            yield from ((offset, offset + moved) for offset in stops)
            yield last, last + moved


def emit_offset_syncs(
    flow: Flow, ledger: FlowLedger, *, window: str, tell: Tell = silent, under: HeldLease | None = None
) -> int:
    """Write the offset syncs of what was verified since the last ones, in one transaction; how many.

    Done under a lease of the name ``window`` (or ``under`` one that is held already), and under a transactional id of its
    own, which is initialised before the last syncs are read (invariant B). Raises FlowBusy, RecordsNotWritten, SlotFenced,
    or a cluster's error.
    """
    if not flow.settings.emit_offset_syncs_enabled:
        return 0
    cluster, topic = place_of_syncs(flow)
    into = Destination(flow, cluster, topic, "offset-syncs")
    with Routes(cluster, "airmirror|syncs") as routes:
        into.ensure(routes, flow.settings.offset_syncs_topic_replication_factor)

        def records() -> list[OffsetSync]:
            load_written(routes, topic, ledger, "offset_syncs")
            return list(_syncs(flow, ledger))

        return write_anew(into, ledger, records, window=window, tell=tell, under=under)


def rewind_offset_syncs(
    flow: Flow,
    ledger: FlowLedger,
    starts: Mapping[TopicPartition, tuple[int, int]],
    held: Callable[[], None],
    tell: Tell,
) -> int:
    """After a reset: say where partitions resume (source and target offset), below what was written before; how many.

    Who reads the syncs in order, as MirrorMaker 2 does, then forgets those above. Under the flow's lease (``held``).
    Raises RecordsNotWritten, or a cluster's error.
    """
    if not flow.settings.emit_offset_syncs_enabled:
        return 0
    cluster, topic = place_of_syncs(flow)
    with Routes(cluster, "airmirror|syncs") as routes:
        if routes.refresh_existing([topic]):
            return 0

        def records() -> list[OffsetSync]:
            load_written(routes, topic, ledger, "offset_syncs")
            written = ledger.offset_syncs()
            return [OffsetSync(*key, *start) for key, start in starts.items() if written.get(key, -1) >= start[0]]

        into = Destination(flow, cluster, topic, "offset-syncs")
        return write(into, records, held=held, tell=tell) if records() else 0


def place_of_syncs(flow: Flow) -> tuple[Cluster, str]:
    names = policy_of(flow)
    if flow.settings.offset_syncs_topic_location == "target":
        return flow.target, names.offset_syncs_topic(flow.source.alias)
    return flow.source, names.offset_syncs_topic(flow.target.alias)


def read_syncs(cluster: Cluster, topic: str) -> Iterator[OffsetSync]:
    """The offset syncs of a topic, in log order; nothing where it does not exist. A record that is none is logged."""
    log_ = TopicPartition(topic, 0)
    with Routes(cluster, "airmirror|syncs") as routes:
        if routes.refresh_existing([topic]):
            return
        end = offsets_with_patience(routes, [log_], LATEST, read_committed=True)[log_]
        for entry in read_records(routes, log_, 0, end):
            if entry.value is None:
                continue
            try:
                yield OffsetSync.decode(entry.key or b"", entry.value)
            except MalformedRecord as error:  # another writer's: MirrorMaker 2 skips it too
                log.warning("cluster %s: %s offset %d is skipped: %s", cluster.alias, topic, entry.offset, error)


def _syncs(flow: Flow, ledger: FlowLedger) -> Iterator[OffsetSync]:
    """Yield offset syncs for what was verified since the last ones in the ledger."""
    written = ledger.offset_syncs()
    most, lag_max = flow.settings.offset_syncs_per_window, flow.settings.offset_lag_max
    for (topic, partition), verified in sorted(ledger.verified().items()):
        last = written.get((topic, partition), -1)
        if verified.offset > last:
            mappings = ledger.mappings(topic, partition, verified.source_topic_id, last + 1, verified.offset + 1)
            yield from choose(mappings, last, verified.offset, most, lag_max)

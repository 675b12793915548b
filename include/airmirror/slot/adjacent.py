"""Records of others in a remote topic: found between what this flow wrote last and what it writes next (invariants B, G).

Every slot looks before it produces anything, so that a partition with records of others stops without a trace; and again at
every write, since others may write meanwhile. Only what the newest mapping and its transaction's marker do not explain is
read: for most partitions that is the offset of their end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airmirror.clusters.protocol.errors import FetchFailed, LastStableOffsetStuck, ReadDenied, RecordsWithheld
from airmirror.clusters.protocol.log import LATEST, offsets_with_patience, read_batches
from airmirror.clusters.protocol.routes import Routes
from airmirror.partitions import TopicPartition
from airmirror.slot.account import NO_DIGEST
from airmirror.slot.contract import SlotPartition
from airmirror.slot.errors import AccessLost, ForeignRecords, PartitionError, PartitionFailed, TargetUnavailable
from airmirror.wire.batch import Batch
from airmirror.wire.mappings import MappingRecord

STABLE_SECONDS = 5.0  # for the last stable offset: every transaction of the flow has ended before


def explained(last: MappingRecord | None) -> int:
    """The end of a remote log that its newest mapping record explains: its records, and the marker that committed them.

    A log that ends there holds nothing else; in a longer one something may lie before the marker too. No marker of ours
    follows records that MirrorMaker 2 has copied.
    """
    return 0 if last is None else last.target_end + int(last.copied > 0 and last.digest != NO_DIGEST)


def look(
    source: str, target: Routes, partitions: Sequence[SlotPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, PartitionError]]:
    """The target's end of each partition, or what is wrong with it, by partition of the source. They have leaders.

    Raises what ``read_batches`` does, save that something can't be read yet.
    """
    ends = offsets_with_patience(target, [partition.remote for partition in partitions], LATEST)
    known: dict[TopicPartition, int] = {}
    errors: dict[TopicPartition, PartitionError] = {}
    for partition in partitions:
        end = max(ends[partition.remote], partition.known_end)
        where = (source, *partition.key)
        error: PartitionError | None = None
        try:
            if end > partition.known_end:
                error = foreign(source, target, partition, max(partition.target_end, 0), end)
        except ReadDenied:
            error = AccessLost(*where, target.alias, partition.remote_topic, "Read")
        except FetchFailed as unreadable:
            error = PartitionFailed(*where, str(unreadable))
        except (LastStableOffsetStuck, RecordsWithheld) as not_yet:
            error = TargetUnavailable(*where, target.alias, partition.remote_topic, str(not_yet))
        if error is None:
            known[partition.key] = end
        else:
            errors[partition.key] = error
    return known, errors


def foreign(source: str, target: Routes, partition: SlotPartition, start: int, end: int) -> ForeignRecords | None:
    """The error of committed records with target offsets in ``[start, end)``, none of which this flow has written."""
    batch = next(data_batches(target, partition.remote, start, end, STABLE_SECONDS), None)
    if batch is None:
        return None
    place = (source, *partition.key, target.alias, partition.remote_topic)
    return ForeignRecords(*place, batch.base_offset, batch.next_offset - 1)


def data_batches(
    routes: Routes, partition: TopicPartition, start: int, end: int, patience: float = 60.0
) -> Iterator[Batch]:
    """Yield the batches with committed records at offsets in ``[start, end)``. Raises what ``read_batches`` does."""
    for _, batches in read_batches(routes, partition, start, end, read_committed=True, patience=patience):
        for batch, aborted in batches:
            is_data = batch.count and not batch.is_control and not aborted
            if is_data and batch.next_offset > start and batch.base_offset < end:
                yield batch

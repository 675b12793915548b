"""Records that others have written to a flow's remote topics since its last window: applications have gone on there."""

from __future__ import annotations

from collections.abc import Collection

from airmirror.clusters.protocol.log import LATEST, offsets_with_patience, read_batches
from airmirror.partitions import TopicPartition
from airmirror.windows.mirror import Journal


def written_since(journal: Journal, remote: Collection[str] | None = None) -> list[str]:
    """Return the remote partitions that hold records after the flow's last one, in words, one each.

    ``remote``: topics of the target, also where nothing was copied yet; None: those that the flow has written. The ledger must
    have caught up.
    """
    ends: dict[TopicPartition, int] = {}
    for last in journal.index.last_segments().values():
        if remote is None or last.remote_topic in remote:
            ends[TopicPartition(last.remote_topic, last.partition)] = last.target_end
    missing = journal.target.refresh_existing({key.topic for key in ends} | set(remote or ()))
    for topic in set(remote or ()) - missing.keys():
        ends = {TopicPartition(topic, number): 0 for number in range(journal.target.partitions(topic))} | ends
    there = [
        key for key in sorted(ends) if key.topic not in missing and key.partition < journal.target.partitions(key.topic)
    ]
    now = offsets_with_patience(journal.target, there, LATEST)
    stable = offsets_with_patience(journal.target, there, LATEST, read_committed=True)
    found = []
    for key in there:
        if stable[key] < now[key]:
            found.append(f"{key}: a transaction is open from offset {stable[key]} on")
        if stable[key] <= ends[key]:
            continue
        batches = read_batches(journal.target, key, ends[key], stable[key], read_committed=True)
        count = sum(batch.count for _, its in batches for batch, aborted in its if not aborted and not batch.is_control)
        if count:
            found.append(f"{key}: {count:,} records were written there after offset {ends[key] - 1}")
    return found

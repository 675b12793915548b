"""Segments that tell of nothing any more: what the source has deleted needs no translation. They are deleted in time.

Kept in any case are each partition's newest segment record, for the next window begins where it ends, and whatever is not
verified yet (invariant F).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from airmirror.clusters.appender import Appender
from airmirror.clusters.routes import Routes
from airmirror.config import Flow
from airmirror.ledger import FlowLedger
from airmirror.naming import segment_topic
from airmirror.offsets.replicated import extents
from airmirror.wire.requests import TopicPartition

MOST = 100_000  # segment records in one round
AT_ONCE = 5_000  # of them waited for together


def prune_segments(flow: Flow, ledger: FlowLedger) -> int:
    """Delete the segment records that lie below the source's log starts; how many. The ledger must have caught up."""
    newest, verified = ledger.last_segments(), ledger.verified()
    with Routes(flow.source, f"airmirror|{flow.name}|prune") as source:
        logs = extents(source, (TopicPartition(*key) for key in newest))
        ids = dict(source.topic_ids)
    firsts = {
        (first.topic, first.partition): first
        for first in ledger.first_segments([(*key, last.source_topic_id) for key, last in newest.items()])
    }
    keys: list[bytes] = []
    for key, last in sorted(newest.items()):
        log, passed = logs.get(TopicPartition(*key)), verified.get(key)
        same = passed is not None and passed.source_topic_id == last.source_topic_id == ids.get(last.topic)
        if log is None or passed is None or not same:
            continue
        end = min(log.start, passed.offset + 1, last.source_start)
        if firsts[key].source_end <= end:
            below = ledger.segments(*key, last.source_topic_id, end=end)
            keys += [record.encode_key() for record in below if record.source_end <= end]
        if len(keys) >= MOST:
            break
    delete_segments(flow, keys[:MOST])
    return min(len(keys), MOST)


def delete_segments(flow: Flow, keys: Sequence[bytes], tell: Callable[[str], None] = lambda phase: None) -> None:
    """Delete the segment records with these keys from the segment topic; the ledger follows when it catches up."""
    if not keys:
        return
    with Appender(flow.target, segment_topic(flow.source.alias)) as appender:
        for first in range(0, len(keys), AT_ONCE):
            tell(f"forgetting {len(keys) - first} segment records")
            appender.append([(key, None) for key in keys[first : first + AT_ONCE]])

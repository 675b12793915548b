"""Mappings that tell of nothing any more: what the source has deleted needs no translation. They are deleted in time.

Kept in any case are each partition's newest mapping record, for the next window begins where it ends, whatever is not verified
yet (invariant F), and all of a topic that is frozen and may return, returns, or has returned and may do so again. Only what lies
before all that is kept is deleted, so that translation meets no gap; and under the flow's lease, so that a record that a reset
and its first window write under the same key is not deleted with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from airmirror.clusters.protocol.errors import LastStableOffsetStuck
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Flow
from airmirror.ledger import FlowLedger
from airmirror.offsets.replicated import extents
from airmirror.partitions import TopicPartition
from airmirror.slot.errors import SlotFenced
from airmirror.tell import Tell, silent
from airmirror.windows.errors import FlowBusy, FlowFrozen
from airmirror.windows.fence import leased, new_window
from airmirror.windows.mirror import Mirror, caught_up_reverse, reverse_ledger

MOST = 100_000  # mapping records under one lease
SECONDS = 60.0  # after which what is left is left to the next time, because windows wait meanwhile
AT_ONCE = 5_000  # of them waited for together
PATIENCE_SECONDS = 2.0  # for an open transaction of the reverse flow


def prune_mappings(flow: Flow, ledger: FlowLedger, tell: Tell = silent) -> int:
    """Delete the mapping records that lie below the source's log starts; how many. The ledger must have caught up.

    A window that followed for hours leaves more than are deleted under one lease, so it is taken again for a minute.

    Raises FlowBusy, SlotFenced, or a cluster's error.
    """
    kept = kept_topics(flow, ledger)
    newest = {key: last for key, last in ledger.last_mappings().items() if key[0] not in kept}
    with Routes(flow.source, f"airmirror|{flow.name}|prune") as source:
        logs = extents(source, (TopicPartition(*key) for key in newest))
        ids = dict(source.topic_ids)
    starts = {key: log.start for key, log in logs.items() if newest[key].source_topic_id == ids.get(key.topic)}

    def below() -> list[bytes]:
        still = kept_topics(flow, ledger)  # one may have been frozen since
        return _below(ledger, {key: start for key, start in starts.items() if key.topic not in still})

    count = delete_mappings(flow, ledger, below, tell)
    deleted, until = count, time.monotonic() + SECONDS
    with suppress(FlowBusy, FlowFrozen, SlotFenced):  # others have come in between two leases
        while deleted == MOST and time.monotonic() < until:
            deleted = delete_mappings(flow, ledger, below, tell)
            count += deleted
    return count


def kept_topics(flow: Flow, ledger: FlowLedger) -> set[str]:
    """The topics of which all mapping records are kept: those that are frozen, and may return; those that return; and those that
    have returned by a failback that was undone, as long as the topics they came from are frozen: the next one counts by them."""
    owners, back = ledger.owners(), reverse_ledger(flow, ledger).owners()
    known = {topic for topic, _ in ledger.state().known} if owners.whole else set()
    returned = {each.remote for each in back.frozen.values() if each.remote}
    return {*owners.frozen, *filter(owners.why_frozen, known), *returned}


def _below(ledger: FlowLedger, starts: Mapping[TopicPartition, int]) -> list[bytes]:
    """Keys of the verified mapping records of each partition that end at or before its log's start."""
    newest, verified = ledger.last_mappings(), ledger.verified()
    keys: list[bytes] = []
    for key, start in sorted(starts.items()):
        last, passed = newest.get(key), verified.get(key)
        if last is None or passed is None or passed.source_topic_id != last.source_topic_id:
            continue
        end = min(start, passed.offset + 1, last.source_start)
        for record in ledger.mappings(*key, last.source_topic_id, end=end):
            if record.source_end > end or len(keys) == MOST:
                break
            keys.append(record.encode_key())
    return keys


def delete_mappings(flow: Flow, ledger: FlowLedger, keys: Callable[[], Sequence[bytes]], tell: Tell) -> int:
    """Delete the mapping records with these keys from the mapping topic, under a lease of their own; how many.

    ``keys`` is asked again once the lease holds and the ledger has caught up, also with what returns by the flow. Nothing to
    delete takes no lease. The ledger follows when it catches up. Raises FlowBusy, SlotFenced.
    """
    if not keys():
        return 0
    window = new_window("prune")
    with Mirror.open(flow, ledger, "prune") as mirror, leased(mirror, window, slots=0) as granted:
        mirror.catch_up()
        with suppress(LastStableOffsetStuck):  # what began to return did so under this lease, and after a fence
            caught_up_reverse(mirror.source, flow, ledger, PATIENCE_SECONDS)
        chosen = keys()
        for first in range(0, len(chosen), AT_ONCE):
            tell(f"forgetting {len(chosen) - first} mapping records")
            granted.check()  # who slept must not delete what others have written under these keys since
            granted.appender.append([(key, None) for key in chosen[first : first + AT_ONCE]])
    return len(chosen)

"""Records that others have written to a flow's remote topics since its last window: applications have written there since.

A window may be at work meanwhile. The logs' ends are asked for first, then the index reads what was committed by then: what lies
in between, and the flow's own producers have not written, is of others.
"""

from __future__ import annotations

from collections.abc import Collection

from airmirror.clusters.protocol.connection import UnsupportedBroker
from airmirror.clusters.protocol.log import LATEST, offsets_with_patience, read_batches
from airmirror.clusters.protocol.producers import known_transactions
from airmirror.ledger import FlowLedger
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import is_own_id
from airmirror.windows.mirror import Journal


def written_since(journal: Journal, remote: Collection[str]) -> list[str]:
    """Return the remote partitions that hold records after the flow's last one, in words, one each. The ledger catches up.

    ``remote``: topics of the target, also where nothing was copied yet. Nothing is found of an aggregate: where others write
    between our records, nobody can tell.
    """
    if journal.flow.is_aggregate:
        return []
    there = journal.target.keys_now(remote)
    stable = offsets_with_patience(journal.target, there, LATEST, read_committed=True)
    now = offsets_with_patience(journal.target, there, LATEST)
    # Else no window has run, or this user may not know. After the ends were asked for: what was committed by then is known now.
    if not journal.target.refresh_existing([journal.topics.mappings]):
        journal.catch_up()
    ends = ends_of_copies(journal.index)
    longer = [key for key in there if now[key] > ends.get(key, 0)]
    own = _own_producers(journal) if longer else frozenset()
    found = []
    for key in longer:
        records, open_from = _others(journal, key, (ends.get(key, 0), stable[key], now[key]), own)
        if open_from >= 0:
            found.append(f"{key}: a transaction is open from offset {open_from} on")
        if records:
            found.append(f"{key}: {records:,} records were written there after offset {ends.get(key, 0) - 1}")
    return found


def _others(journal: Journal, key: TopicPartition, ends: tuple[int, int, int], own: Collection[int]) -> tuple[int, int]:
    """The records of others in a partition that count, and where the first of their open transactions begins, or -1: looked for
    from the flow's own end to the last stable offset, and from there to the log's end."""
    last, stable, now = ends
    records, open_from = 0, -1
    for start, end, is_stable in ((last, stable, True), (max(last, stable), now, False)):
        if start >= end:
            continue
        for _, batches in read_batches(journal.target, key, start, end, read_committed=is_stable):
            for batch, aborted in batches:
                is_ours = batch.is_transactional and batch.producer_id in own
                if is_ours or aborted or batch.is_control or batch.next_offset <= start:
                    continue
                if is_stable or not batch.is_transactional:
                    records += batch.count
                elif open_from < 0:
                    open_from = batch.base_offset
    return records, open_from


def ends_of_copies(ledger: FlowLedger) -> dict[TopicPartition, int]:
    """Return where each remote partition ends, as the flow has written it."""
    return {last.remote: last.target_end for last in ledger.last_mappings().values()}


def _own_producers(journal: Journal) -> frozenset[int]:
    """Return the ids of the flow's own producers; none where these brokers do not tell, or this user may not ask."""
    try:
        known = known_transactions(journal.target)
    except UnsupportedBroker:
        return frozenset()
    return frozenset(each.producer_id for each in known if is_own_id(journal.flow, each.transactional_id))

"""Forgetting what is old: mapping records (in the mapping topic, and so in the ledger) and pages that are no evidence.

A mapping record is needed to translate positions in its range, and to audit it again. What is not verified stays, and so does
the newest of every partition, from which replication continues (invariants A, C and F).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.ledger.pages import forget_pages
from airmirror.offsets.pruning import delete_mappings, kept_topics, prune_mappings
from airmirror.tell import Tell, silent

DAY_MS = 86_400_000


@dataclass(frozen=True)
class Pruned:
    """The numbers of mapping records and pages removed."""

    mappings: int
    pages: int


def prune(opened: Opened, days: int, *, now_ms: int | None = None, tell: Tell = silent) -> Pruned:
    """Forget the flow's verified mapping records and its pages that are older than ``days`` days.

    Mapping records below the source's log starts go too; none of a flow or topic that is frozen, for it may return. Raises
    FlowBusy, or a cluster's error.
    """
    before = (int(time.time() * 1000) if now_ms is None else now_ms) - days * DAY_MS
    flow, ledger = opened.flow, opened.ledger
    tell("reading the internal topics")
    catch_up_ledger(opened)

    def old_keys() -> list[bytes]:
        ledger.count_verified()  # what is shown as metrics counts them still
        return ledger.prunable(before, kept_topics(flow, ledger))

    count = prune_mappings(flow, ledger, tell) + delete_mappings(flow, ledger, old_keys, tell)
    if count:
        catch_up_ledger(opened)
    return Pruned(count, forget_pages(ledger.engine, flow.name, before))

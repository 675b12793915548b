"""The outcome of a failback that was carried out: what returned, where groups went, what stays behind.

What has returned is told by the account of the flow that is unfrozen: the same whichever run of the failback wrote it. The
account's mappings map the records that returned. What it counts as lost lies on the source alone, was rescued, was accepted as
different, or was deleted there; only where that is in doubt is the source read again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Flow
from airmirror.evidence.logs import Log
from airmirror.flows.prepare import Opened
from airmirror.ledger import FlowLedger, GroupOffset
from airmirror.partitions import CopyFacts, TopicPartition
from airmirror.runbooks.failback.differing import accepted, freezes
from airmirror.runbooks.failback.divergence import Offsets, Span
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.pair import Pair
from airmirror.runbooks.failback.plan import FailbackPlan, failback_plan
from airmirror.windows.continuing import RETURN
from airmirror.wire.mappings import MappingRecord, ResetRecord
from airmirror.wire.moves import FAILBACK, GroupMove, Rescue, rescues_of
from airmirror.wire.owners import OrderScope


@dataclass(frozen=True)
class Returned(CopyFacts):
    """A partition that returned: ``records`` of its remote topic. ``behind``: records of the source that stay there alone.

    ``resumes_at``: the source offset at which the flow that was failed over resumes.
    """

    records: int
    behind: int
    resumes_at: int


@dataclass(frozen=True)
class FailbackOutcome:
    """The outcome of a failback. ``plan``: how things are after it; ``moves``: where groups stood on the source and went;
    ``left``: positions of groups that were not moved, with their reasons; ``accepted``: records that differ on both sides, which
    a person has accepted; ``seconds``: how long this run of it took.
    """

    order: FailbackOrder
    seconds: float
    plan: FailbackPlan
    returned: tuple[Returned, ...]
    moves: tuple[GroupMove, ...]
    left: tuple[tuple[str, str, int, str], ...]
    accepted: tuple[ResetRecord, ...] = ()

    @property
    def is_good(self) -> bool:
        return not self.left and not self.accepted and not any(each.behind for each in self.returned)


def outcome_of(pair: Pair, order: FailbackOrder, groups: Sequence[GroupOffset], seconds: float) -> FailbackOutcome:
    """Look at both clusters after the last step. ``groups``: what became of each position."""
    now = pair.now()
    owners = now.forward.ledger.owners()

    def ordered(each: Returned | GroupMove | ResetRecord) -> bool:
        if order.topics:
            return each.topic in order.topics
        record = owners.record(each.topic)
        # What another order has named came back by that one.
        return record is None or record.scope is OrderScope.FLOW

    moves = now.reverse.ledger.of_kind(GroupMove)
    return FailbackOutcome(
        order=order,
        seconds=seconds,
        plan=failback_plan(now.forward),
        returned=tuple(filter(ordered, returned(now.forward))),
        moves=tuple(each for each in moves if each.window.startswith(FAILBACK) and ordered(each)),
        left=tuple((row.group, row.topic, row.partition, row.reason) for row in groups if row.reason),
        accepted=tuple(filter(ordered, accepted(now.forward))),
    )


def returned(forward: Opened) -> list[Returned]:
    """Return the partitions that returned since the flow, or their topic, was frozen last, by topic and partition.

    The ledger has caught up. Raises what reading a log does.
    """
    flow, ledger = forward.flow, forward.ledger
    rescues = ledger.of_kind(Rescue)
    found = []
    with Routes(flow.source, f"airmirror|{flow.name}|failback") as source:
        for key, records in sorted(_accounts(ledger).items()):
            last = records[-1]
            of_topic = rescues_of(rescues, *key, str(last.source_topic_id))
            rescued = [each for each in of_topic if each.source_end > records[0].source_start]
            behind = 0
            if sum(each.lost for each in records) > sum(each.records for each in rescued):
                differ = [(each.lost_first, each.lost_end) for each in accepted(forward) if each.key == key]
                mapped = [(run.source_first, run.source_end) for each in records for run in each.ranges]
                spans = [(each.source_start, each.source_end) for each in rescued]
                behind = _alone(source, flow, records, [mapped, spans, differ])
            copied = sum(each.copied for each in records)
            found.append(Returned(*key, last.remote_topic, copied, behind, last.source_end))
    return found


def _accounts(ledger: FlowLedger) -> dict[TopicPartition, list[MappingRecord]]:
    """Return the mapping records of returns since the freezes, by partition and in order.

    A record of an earlier return, written again because it was shortened, is not among them: its window decided nothing since.
    """
    found, last = defaultdict[TopicPartition, list[MappingRecord]](list), ledger.last_mappings().values()
    for frozen, topics in freezes(ledger).items():
        decided = [each for each in ledger.of_kind(ResetRecord, frozen) if each.choice == RETURN]
        by: list[ResetRecord | MappingRecord] = [*decided, *last]  # the last: of a partition that had no account before
        windows = {(each.topic, each.partition, each.window) for each in by if each.topic in topics}
        for window in sorted({each for *_, each in windows if each.startswith(FAILBACK)}):
            for record in ledger.of_window(window, frozen):
                if (record.topic, record.partition, window) in windows:
                    found[record.key].append(record)
    return {key: sorted(records, key=lambda each: each.source_start) for key, records in found.items()}


def _alone(source: Routes, flow: Flow, records: Sequence[MappingRecord], without: Sequence[Sequence[Span]]) -> int:
    """Return how many records lie on the source, where the account is, that are in none of these spans."""
    first, last, others = records[0], records[-1], [Offsets.of(spans) for spans in without]
    source.refresh([first.topic])
    log = Log(source, first.key, first.source_start, last.source_end, is_committed=flow.reads_committed)
    return sum(int((~np.any([each.has(part.offsets) for each in others], axis=0)).sum()) for part in log.records())

"""``airmirror status``: where a flow stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from airmirror.flows.prepare import Opened, dry_run
from airmirror.ledger import WindowRow
from airmirror.offsets.latency import Latency, measure
from airmirror.topics.remote import TopicPlan
from airmirror.windows.plan import Planned
from airmirror.wire.segments import GATE, Hold


@dataclass(frozen=True)
class FlowStatus:
    """A flow's totals; lag in records, to the high watermark."""

    flow: str
    topics: int
    partitions: int
    lag: int
    behind: int  # partitions with something to copy
    unverified: int  # segment records that no gate has judged
    held: dict[str, str]  # partition -> reason
    errors: dict[str, str]
    windows: list[WindowRow]
    latency: list[Latency]
    resets: list[str]  # what was decided with `airmirror reset`: when, who, why
    holds: list[Hold]
    refused: list[str]  # topics that can't be replicated, and why
    warnings: list[str]
    needs_somebody: (
        bool  # nothing gets better by itself: a hold of the gate, an error that does not pass, a refused topic
    )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def flow_status(opened: Opened) -> FlowStatus:
    """Read both clusters' offsets and the flow's internal topics."""
    topics, planned = dry_run(opened)
    ledger = opened.ledger
    holds = [hold for _, hold in sorted(ledger.holds().items())]
    return FlowStatus(
        flow=opened.flow.name,
        topics=len(topics.topics),
        partitions=len(planned),
        lag=sum(max(0, item.high_watermark - item.start) for item in planned),
        behind=sum(1 for item in planned if item.has_work),
        unverified=len(ledger.unverified()),
        held={f"{hold.topic}-{hold.partition}": hold.reason for hold in holds},
        errors={str(item.key): str(item.error) for item in planned if item.error},
        windows=ledger.windows(5),
        latency=measure(opened.flow, ledger),
        resets=[str(record) for record in ledger.resets()],
        holds=holds,
        refused=[str(refused) for refused in topics.refused],
        warnings=list(topics.warnings),
        needs_somebody=needs_somebody(topics, planned, holds),
    )


def needs_somebody(topics: TopicPlan, planned: Sequence[Planned], holds: Sequence[Hold]) -> bool:
    """Whether a person must act: what somebody holds is decided, and what is transient passes."""
    final = any(item.error is not None and not item.error.transient for item in planned)
    return final or bool(topics.refused) or any(hold.by == GATE for hold in holds)

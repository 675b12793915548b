"""``airmirror status``: where a flow stands."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from airmirror.flows.prepare import Opened, dry_run
from airmirror.ledger import WindowRow
from airmirror.offsets.latency import Latency, measure


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

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def flow_status(opened: Opened) -> FlowStatus:
    """Read both clusters' offsets and the flow's internal topics."""
    topics, planned = dry_run(opened)
    ledger = opened.ledger
    return FlowStatus(
        flow=opened.flow.name,
        topics=len(topics.topics),
        partitions=len(planned),
        lag=sum(max(0, item.high_watermark - item.start) for item in planned),
        behind=sum(1 for item in planned if item.has_work),
        unverified=len(ledger.unverified()),
        held={f"{topic}-{partition}": hold.reason for (topic, partition), hold in ledger.holds().items()},
        errors={str(item.key): str(item.error) for item in planned if item.error},
        windows=ledger.windows(5),
        latency=measure(opened.flow, ledger),
        resets=[str(record) for record in ledger.resets()],
    )

"""The narrowing of a run: topics, partitions, the way of verifying."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airmirror.config import Flow
from airmirror.partitions import TopicPartition


@dataclass(frozen=True)
class Selection:
    """Empty: everything; ``verify`` None: as the flow has it."""

    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    verify: str | None = None
    dry_run: bool = False

    def takes(self, partition: TopicPartition) -> bool:
        return (not self.topics or partition.topic in self.topics) and (
            not self.partitions or partition.partition in self.partitions
        )

    def applied(self, flow: Flow) -> Flow:
        """The flow, verified as it was chosen."""
        return replace(flow, window=replace(flow.window, verify=self.verify)) if self.verify else flow

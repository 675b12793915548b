"""Records that have returned to a flow's source, and that the flow has no account of: it is not unfrozen over them.

A failback that was undone leaves them there. The flow's windows would copy them to where they came from.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Flow
from airmirror.errors import AirmirrorError, command, listed
from airmirror.ledger import FlowLedger
from airmirror.topics.names import select
from airmirror.wire.mappings import MappingRecord


@dataclass(eq=False)
class ReturnNotFinished(AirmirrorError):
    """A flow to unfreeze on whose source records lie that have returned there, by a failback that was undone. Nothing was
    unfrozen."""

    flow: str
    partitions: tuple[str, ...]

    def __str__(self) -> str:
        finish = command("failback", "run", "--reason", "…", "--yes", flow=self.flow)
        return (
            f"flow {self.flow!r} stays frozen: it would copy records back that have returned to its source; let the rest return "
            f"too, which unfreezes the flow: {finish}\n{listed(self.partitions)}"
        )


def check_none_uncounted(
    flow: Flow, ledger: FlowLedger, reverse: FlowLedger, source: Routes | None, topics: Collection[str]
) -> None:
    """Raise ReturnNotFinished where something of ``topics`` (none: of all) has returned that the flow does not account for.

    Both ledgers have caught up; ``source`` None: it can't be reached.
    """
    own, theirs = ledger.last_mappings(), reverse.last_mappings()
    into = {each.remote_topic for each in theirs.values() if not topics or each.remote_topic in topics}
    remote = select(flow, into) | {topic: last.remote_topic for (topic, _), last in own.items()}
    back = {key: last for key, last in theirs.items() if remote.get(last.remote_topic) == key[0]}
    back = {key: last for key, last in back.items() if last.remote_topic in into}
    if source is not None and back:
        missing = source.refresh_existing({last.remote_topic for last in back.values()})
        there = {topic: identity for topic, identity in source.topic_ids.items() if topic not in missing}
        back = {key: last for key, last in back.items() if there.get(last.remote_topic) == last.target_topic_id}
    found = [
        f"{last.remote_topic}-{number}: up to offset {last.target_end}"
        for (_, number), last in sorted(back.items())
        if _is_uncounted(reverse, last, own.get((last.remote_topic, number)))
    ]
    if found:
        raise ReturnNotFinished(flow.name, tuple(found))


def _is_uncounted(reverse: FlowLedger, last: MappingRecord, own: MappingRecord | None) -> bool:
    """Return whether the reverse flow has copied more than the flow's own newest record accounts for."""
    of_topic = own if own is not None and own.source_topic_id == last.target_topic_id else None
    end, start = (of_topic.source_end, of_topic.target_end) if of_topic else (0, 0)
    if last.target_end <= end:
        return False
    records = reverse.mappings(last.topic, last.partition, last.source_topic_id, start=start)
    return any(each.copied and each.target_end > end for each in records)

"""Unfreezing a flow: its windows resume after what was rescued, which lies on the target already, in a topic of its own.
It is not unfrozen over records that have returned to its source, by a failback that was undone, and that it has no account of.

Its next window copies what was not replicated while the flow was frozen, and not rescued.
"""

from __future__ import annotations

from collections.abc import Collection

from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Flow
from airmirror.errors import AirmirrorError, command, listed
from airmirror.flows.prepare import Opened
from airmirror.ledger import FlowLedger
from airmirror.tell import Tell, silent
from airmirror.topics.names import select
from airmirror.windows import resetting
from airmirror.windows.continuing import Continuation, commit, continue_after
from airmirror.windows.fence import GrantedLease, fence_around
from airmirror.windows.mirror import Mirror
from airmirror.windows.resets import Choice, Facts, borne_out
from airmirror.wire.mappings import MappingRecord
from airmirror.wire.moves import Rescue, rescues_of


def resume_after_rescues(
    opened: Opened,
    granted: GrantedLease,
    *,
    by: str,
    reason: str,
    topics: Collection[str] = (),
    tell: Tell = silent,
) -> None:
    """Account for what was rescued of ``topics`` (none: of all), under the flow's lease. Done again, nothing is added.

    The source is asked only where something was rescued that the flow has no account of. Its log must be the one that was
    copied: where it is not, the flow's windows say so. Raises a cluster's error, SlotFenced.
    """
    names = _rescued_since(opened, topics)
    if not names:
        return
    with Mirror.open(opened.flow, opened.ledger, "resume") as mirror:
        mirror.refresh()
        missing = mirror.source.refresh_existing(names)
        there = {topic: remote for topic, remote in names.items() if topic not in missing}
        rescues = opened.ledger.of_kind(Rescue)
        looked = [_after(mirror, facts, rescues) for facts in resetting.look(mirror, there, Choice.ACCEPT_LOSS)]
        found = [each for each in looked if each is not None]
        if found:
            tell("resuming after what was rescued")
            commit(mirror, granted, fence_around(granted, 1).numbers[0], found, by=by, reason=reason)


def _rescued_since(opened: Opened, topics: Collection[str]) -> dict[str, str]:
    """The topics of which more was rescued than the flow has an account of, with their remote topics."""
    last = opened.ledger.last_mappings()
    every = opened.ledger.of_kind(Rescue)
    names = select(opened.flow, {each.topic for each in every})  # also of what nothing was copied before
    names |= {topic: record.remote_topic for (topic, _), record in last.items()}
    return {
        each.topic: names[each.topic]
        for each in every
        if (not topics or each.topic in topics)
        and each.topic in names
        and ((each.topic, each.partition) not in last or last[each.topic, each.partition].source_end < each.source_end)
    }


def _after(mirror: Mirror, facts: Facts, rescues: Collection[Rescue]) -> Continuation | None:
    kept = borne_out(facts)
    its = rescues_of(rescues, *facts.key, str(facts.source_topic_id))
    end = max((each.source_end for each in its), default=0)
    start = kept.last.source_end if kept.last else facts.earliest
    if not kept.is_whole or start >= end or facts.target_topic_id == resetting.NO_TOPIC:
        return None
    target_end = kept.last.target_end if kept.last else 0
    return continue_after(mirror, facts, kept, start=start, end=end, target_end=target_end)


class ReturnNotFinished(AirmirrorError):
    """A flow to unfreeze on whose source records lie that have returned there, by a failback that was undone. Nothing was
    unfrozen."""

    flow: str
    partitions: tuple[str, ...]
    topics: tuple[str, ...]  # that the order names

    def __str__(self) -> str:
        finish = command("failback", "run", "--reason", "…", "--yes", flow=self.flow, topics=self.topics)
        return (
            f"flow {self.flow!r} stays frozen: it would copy records back that have returned to its source; let the rest return "
            f"too, which unfreezes the flow: {finish}\n{listed(self.partitions)}"
        )


def check_none_uncounted(
    flow: Flow, ledger: FlowLedger, reverse: FlowLedger, source: Routes | None, topics: Collection[str]
) -> None:
    """Raise ReturnNotFinished where something of ``topics`` (none: of the flow, but what another order has named) has returned
    that the flow does not account for.

    Both ledgers have caught up; ``source`` None: it can't be reached.
    """
    own, theirs, apart = ledger.last_mappings(), reverse.last_mappings(), ledger.owners().is_apart
    into = {each.remote_topic for each in theirs.values()}
    into = {topic for topic in into if (topic in topics if topics else not apart(topic))}
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
        raise ReturnNotFinished(flow.name, tuple(found), tuple(topics))


def _is_uncounted(reverse: FlowLedger, last: MappingRecord, own: MappingRecord | None) -> bool:
    """Return whether the reverse flow has copied more than the flow's own newest record accounts for."""
    of_topic = own if own is not None and own.source_topic_id == last.target_topic_id else None
    end, start = (of_topic.source_end, of_topic.target_end) if of_topic else (0, 0)
    if last.target_end <= end:
        return False
    records = reverse.mappings(last.topic, last.partition, last.source_topic_id, start=start)
    return any(each.copied and each.target_end > end for each in records)

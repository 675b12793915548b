"""Opening a flow again: its windows go on after what was rescued, which lies on the target already.

What never crossed while the flow was closed, and was not rescued, its next window copies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from airmirror.errors import AirmirrorError, command
from airmirror.flows.prepare import Opened
from airmirror.partitions import TopicPartition
from airmirror.topics.names import select
from airmirror.windows import resetting
from airmirror.windows.continuing import Continuation, commit, continue_after
from airmirror.windows.fence import Granted, fence_around
from airmirror.windows.mirror import Mirror
from airmirror.windows.resets import Choice, Facts, Kept, borne_out
from airmirror.wire.switches import Rescue, rescues_of

Tell = Callable[[str], None]


@dataclass(eq=False)
class WrittenBeforeRescued(AirmirrorError):
    """Records of applications in remote partitions, before rescued ones that were appended: an opened flow would go on after
    both, and they would return no more. Nothing was opened."""

    flow: str
    partitions: tuple[str, ...]

    def __str__(self) -> str:
        finish = command("failback", "run", "--reason", "…", "--yes", flow=self.flow)
        return (
            f"flow {self.flow!r} stays closed: applications wrote to {', '.join(self.partitions)} before rescued records were "
            f"appended there; let these records return, which opens the flow too: {finish}"
        )


def go_on_after_rescues(
    opened: Opened,
    granted: Granted,
    *,
    by: str,
    reason: str,
    topics: Collection[str] = (),
    tell: Tell = lambda phase: None,
) -> list[Continuation]:
    """Account for what was rescued of ``topics`` (none: of all), under the flow's claim; what was added. Done again, nothing is.

    The source is asked only where something was rescued that the flow has no account of. Its log must be the one that was
    copied: where it is not, the flow's windows say so. Raises WrittenBeforeRescued, a cluster's error, SlotFenced.
    """
    names = _rescued_since(opened, topics)
    if not names:
        return []
    with Mirror.open(opened.flow, opened.ledger, "open") as mirror:
        mirror.refresh()
        missing = mirror.source.refresh_existing(names)
        there = {topic: remote for topic, remote in names.items() if topic not in missing}
        rescues = opened.ledger.of_kind(Rescue)
        looked = [_after(mirror, facts, rescues) for facts in resetting.look(mirror, there, Choice.ACCEPT_LOSS)]
        found = [each for each in looked if each is not None]
        if mixed := [name for each in found for name in _mixed(mirror, each, rescues)]:
            raise WrittenBeforeRescued(opened.flow.name, tuple(mixed))
        if found:
            tell("going on after what was rescued")
            commit(mirror, granted, fence_around(granted, 1).numbers[0], found, by=by, reason=reason)
    return found


def _rescued_since(opened: Opened, topics: Collection[str]) -> dict[str, str]:
    """The topics of which more was rescued than the flow has an account of, with their remote topics."""
    last = opened.ledger.last_segments()
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
    target_end = max([_target_end(kept), *(end for _, end in _appended(facts, rescues))])
    return continue_after(mirror, facts, kept, start=start, end=end, target_end=target_end)


def _mixed(mirror: Mirror, each: Continuation, rescues: Collection[Rescue]) -> list[str]:
    """The remote partition, where others' records lie between what is the flow's own; in an aggregate they always may."""
    remote, end = TopicPartition(each.facts.remote_topic, each.facts.partition), _target_end(each.kept)
    for first, last in () if mirror.flow.is_aggregate else _appended(each.facts, rescues):
        if resetting.holds_records(mirror.target, remote, end, first):
            return [str(remote)]
        end = max(end, last)
    return []


def _target_end(kept: Kept) -> int:
    return kept.last.target_end if kept.last else 0


def _appended(facts: Facts, rescues: Collection[Rescue]) -> Sequence[tuple[int, int]]:
    """The target offsets of what was rescued to the end of the remote partition itself, each from one on to before another."""
    its = rescues_of(rescues, *facts.key, str(facts.source_topic_id))
    return sorted((each.target_start, each.target_end) for each in its if each.into == facts.remote_topic)

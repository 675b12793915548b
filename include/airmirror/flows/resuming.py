"""Unfreezing a flow: its windows resume after what was rescued, which lies on the target already, in a topic of its own.

Its next window copies what was not replicated while the flow was frozen, and not rescued.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from airmirror.flows.prepare import Opened
from airmirror.topics.names import select
from airmirror.windows import resetting
from airmirror.windows.continuing import Continuation, commit, continue_after
from airmirror.windows.fence import GrantedLease, fence_around
from airmirror.windows.mirror import Mirror
from airmirror.windows.resets import Choice, Facts, borne_out
from airmirror.wire.moves import Rescue, rescues_of

Tell = Callable[[str], None]


def resume_after_rescues(
    opened: Opened,
    granted: GrantedLease,
    *,
    by: str,
    reason: str,
    topics: Collection[str] = (),
    tell: Tell = lambda phase: None,
) -> list[Continuation]:
    """Account for what was rescued of ``topics`` (none: of all), under the flow's lease; what was added. Done again, nothing is.

    The source is asked only where something was rescued that the flow has no account of. Its log must be the one that was
    copied: where it is not, the flow's windows say so. Raises a cluster's error, SlotFenced.
    """
    names = _rescued_since(opened, topics)
    if not names:
        return []
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
    return found


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

"""The differences between a flow's topics and their remote topics, one row each, from the plan. No cluster is asked."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from airmirror.topics.remote import LargerTopic, TopicPlan, Waiting


@dataclass(frozen=True)
class Drift:
    """One difference. ``outcome``: what the next window makes of the target; ``will_change``: whether it writes at all."""

    topic: str
    remote: str
    what: str  # "topic", "partitions", "ACL" or a config's name
    source: str | None
    target: str | None
    outcome: str
    reason: str
    will_change: bool

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def drifts(planned: TopicPlan) -> list[Drift]:
    """All differences, by topic; topics that don't differ have none."""
    topics = {remote: topic for topic, remote in planned.topics.items()}
    found = [
        Drift(refused.topic, refused.remote, "topic", "exists", None, "refused", refused.reason, False)
        for refused in planned.refused
    ]
    for new in planned.create:
        outcome = f"created with {new.partitions} partitions"
        found.append(
            Drift(topics[new.name], new.name, "topic", "exists", "missing", outcome, "every topic is mirrored", True)
        )
    for more in planned.grow:
        outcome, why = f"{more.partitions} partitions", "partitions grow with the source"
        before, after = str(more.before), str(more.partitions)
        found.append(Drift(topics[more.name], more.name, "partitions", after, before, outcome, why, True))
    kept: list[LargerTopic | Waiting] = [*planned.larger, *planned.waiting]
    for less in kept:
        source, target = str(less.source), str(less.target)
        found.append(Drift(less.topic, less.remote, "partitions", source, target, "unchanged", less.reason, False))
    for topic, differences in planned.differences.items():
        for each in differences:
            outcome = "unchanged"
            if each.change:
                outcome = "the target's default" if each.change.after is None else each.change.after
            changes = each.change is not None
            remote = planned.topics[topic]
            found.append(Drift(topic, remote, each.key, each.source, each.target, outcome, each.reason, changes))
    for acl in planned.acls:
        why = "readers of the topic may read its remote topic"
        found.append(Drift(topics[acl.topic], acl.topic, "ACL", str(acl), "missing", "created", why, True))
    return sorted(found, key=lambda drift: (drift.topic, drift.remote))

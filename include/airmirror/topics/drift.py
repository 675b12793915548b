"""The differences between a flow's topics and their remote topics, one row each, from the plan. No cluster is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from airmirror.errors import counted
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
    found = [*_of_topics(planned, topics), *_of_configs(planned), *_of_acls(planned, topics)]
    return sorted(found, key=lambda drift: (drift.topic, drift.remote))


def _of_topics(planned: TopicPlan, topics: Mapping[str, str]) -> list[Drift]:
    found = [
        Drift(
            topic=refused.topic,
            remote=refused.remote,
            what="topic",
            source="exists",
            target=None,
            outcome="refused",
            reason=refused.reason,
            will_change=False,
        )
        for refused in planned.refused
    ]
    for new in planned.create:
        outcome = f"created with {counted(new.partitions, 'partition')}"
        found.append(
            Drift(
                topic=topics[new.name],
                remote=new.name,
                what="topic",
                source="exists",
                target="missing",
                outcome=outcome,
                reason="every topic is mirrored",
                will_change=True,
            )
        )
    for more in planned.grow:
        outcome, why = f"{more.partitions} partitions", "partitions grow with the source"
        before, after = str(more.before), str(more.partitions)
        found.append(
            Drift(
                topic=topics[more.name],
                remote=more.name,
                what="partitions",
                source=after,
                target=before,
                outcome=outcome,
                reason=why,
                will_change=True,
            )
        )
    kept: list[LargerTopic | Waiting] = [*planned.larger, *planned.waiting]
    for less in kept:
        source, target = str(less.source), str(less.target)
        found.append(
            Drift(
                topic=less.topic,
                remote=less.remote,
                what="partitions",
                source=source,
                target=target,
                outcome="unchanged",
                reason=less.reason,
                will_change=False,
            )
        )
    return found


def _of_configs(planned: TopicPlan) -> list[Drift]:
    found = []
    for topic, differences in planned.differences.items():
        for each in differences:
            outcome = "unchanged"
            if each.change:
                outcome = "the target's default" if each.change.after is None else each.change.after
            changes = each.change is not None
            remote = planned.topics[topic]
            found.append(
                Drift(
                    topic=topic,
                    remote=remote,
                    what=each.key,
                    source=each.source,
                    target=each.target,
                    outcome=outcome,
                    reason=each.reason,
                    will_change=changes,
                )
            )
    return found


def _of_acls(planned: TopicPlan, topics: Mapping[str, str]) -> list[Drift]:
    why = "readers of the topic may read its remote topic"
    return [
        Drift(
            topic=topics[acl.topic],
            remote=acl.topic,
            what="ACL",
            source=str(acl),
            target="missing",
            outcome="created",
            reason=why,
            will_change=True,
        )
        for acl in planned.acls
    ]

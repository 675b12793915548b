"""The differences between a flow's topics and their remote topics, one row each, from the plan. No cluster is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from airmirror.errors import counted
from airmirror.topics.remote import TopicPlan


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
    will_change: bool = False


def drifts(planned: TopicPlan) -> list[Drift]:
    """All differences, by topic; topics that don't differ have none."""
    topics = {remote: topic for topic, remote in planned.topics.items()}
    found = [*_of_topics(planned, topics), *_of_configs(planned), *_of_acls(planned, topics)]
    return sorted(found, key=lambda drift: (drift.topic, drift.remote))


def _of_topics(planned: TopicPlan, topics: Mapping[str, str]) -> Iterator[Drift]:
    for refused in planned.refused:
        yield Drift(refused.topic, refused.remote, "topic", "exists", None, outcome="refused", reason=refused.reason)
    for new in planned.create:
        made, why = f"created with {counted(new.partitions, 'partition')}", "every topic is mirrored"
        topic = topics[new.name]
        yield Drift(topic, new.name, "topic", "exists", "missing", outcome=made, reason=why, will_change=True)
    for more in planned.grow:
        after, why = str(more.partitions), "partitions grow with the source"
        place = (topics[more.name], more.name, "partitions")
        yield Drift(*place, after, str(more.before), outcome=f"{after} partitions", reason=why, will_change=True)
    for less in planned.uneven:
        source, target = str(less.source), str(less.target)
        yield Drift(less.topic, less.remote, "partitions", source, target, outcome="unchanged", reason=less.reason)


def _of_configs(planned: TopicPlan) -> Iterator[Drift]:
    for topic, differences in planned.differences.items():
        for each in differences:
            outcome = "unchanged"
            if each.change:
                outcome = "the target's default" if each.change.after is None else each.change.after
            place, changes = (topic, planned.topics[topic], each.key), each.change is not None
            yield Drift(*place, each.source, each.target, outcome=outcome, reason=each.reason, will_change=changes)


def _of_acls(planned: TopicPlan, topics: Mapping[str, str]) -> Iterator[Drift]:
    why = "readers of the topic may read its remote topic"
    for acl in planned.acls:
        place = (topics[acl.topic], acl.topic, "ACL")
        yield Drift(*place, str(acl), "missing", outcome="created", reason=why, will_change=True)

"""The drift of a flow's topics: a row a difference, with what will be done and why."""

from __future__ import annotations

from airmirror.clusters.admin.acls import Acl
from airmirror.clusters.admin.description import ConfigChange, NewPartitions, NewTopic
from airmirror.topics.configs import ConfigDifference
from airmirror.topics.drift import Drift, drifts
from airmirror.topics.remote import RefusedTopic, TopicPlan, UnevenTopic

CHANGE = ConfigChange("east.grown", "retention.ms", "1", "2")
PLANNED = TopicPlan(
    topics={"new": "east.new", "grown": "east.grown", "larger": "east.larger", "same": "east.same"},
    create=(NewTopic("east.new", 3, 1),),
    grow=(NewPartitions("east.grown", 2, 4),),
    refused=(RefusedTopic("east", "west", "long", "east.long", "its name is too long"),),
    uneven=(UnevenTopic("larger", "east.larger", 1, 5),),
    differences={
        "grown": (
            ConfigDifference("retention.ms", "2", "1", CHANGE, "the source's value is copied"),
            ConfigDifference("min.insync.replicas", "2", "1", None, "config.properties.exclude names it"),
        )
    },
    acls=(
        Acl(
            topic="east.grown", pattern="LITERAL", principal="User:ann", host="*", operation="READ", permission="ALLOW"
        ),
    ),
)


def test_a_row_for_each_difference_and_none_for_what_is_the_same() -> None:
    rows = {(row.topic, row.what): row for row in drifts(PLANNED)}
    assert set(rows) == {
        ("new", "topic"),
        ("grown", "partitions"),
        ("grown", "retention.ms"),
        ("grown", "min.insync.replicas"),
        ("grown", "ACL"),
        ("long", "topic"),
        ("larger", "partitions"),
    }
    assert rows["grown", "retention.ms"] == Drift(
        topic="grown",
        remote="east.grown",
        what="retention.ms",
        source="2",
        target="1",
        outcome="2",
        reason="the source's value is copied",
        will_change=True,
    )
    assert rows["grown", "min.insync.replicas"].outcome == "unchanged"
    assert (rows["grown", "partitions"].source, rows["grown", "partitions"].target) == ("4", "2")
    assert rows["long", "topic"].reason == "its name is too long"
    assert "nothing is replicated to 1 and above" in rows["larger", "partitions"].reason


def test_what_will_change() -> None:
    assert {(row.topic, row.what) for row in drifts(PLANNED) if row.will_change} == {
        ("new", "topic"),
        ("grown", "partitions"),
        ("grown", "retention.ms"),
        ("grown", "ACL"),
    }


def test_a_default_is_named() -> None:
    change = ConfigChange("east.a", "segment.ms", "5", None)
    planned = TopicPlan(
        topics={"a": "east.a"},
        create=(),
        grow=(),
        refused=(),
        uneven=(),
        differences={"a": (ConfigDifference("segment.ms", "9", "5", change, "r"),)},
    )
    assert drifts(planned)[0].outcome == "the target's default"

"""The topics that a flow replicates, after T/MirrorSourceConnectorTest.java, with trunk's cycle rule."""

from __future__ import annotations

import pytest

from airmirror.naming import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    TopicFilter,
    hops,
    is_cycle,
    mapping_topic,
    progress_topic,
    replicated,
)

EVERYTHING = TopicFilter((".*",), ())
NOTHING = TopicFilter((), ())
DEFAULT = DefaultReplicationPolicy()
IDENTITY = IdentityReplicationPolicy(source_alias="source")


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("topic1", True),
        ("other.topic1", True),
        ("target.topic1", False),
        ("target.source.topic1", False),
        ("source.target.topic1", False),
        ("other.target.topic1", False),
        ("target.source.target.topic1", False),
        ("source.topic1", False),  # trunk; before KAFKA-9914 it was replicated
        ("other.source.topic1", False),
        ("source.heartbeats", False),
    ],
)
def test_no_cycles(topic: str, expected: bool) -> None:
    assert replicated(topic, EVERYTHING, DEFAULT, "source", "target") is expected


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("topic1", True),
        ("target.topic1", True),
        ("source.target.topic1", True),
        ("heartbeats", True),
        ("other.heartbeats", True),
        ("target.heartbeats", False),
        ("target.source.heartbeats", False),
        ("source.target.heartbeats", False),
        ("target.source.target.heartbeats", False),
    ],
)
def test_identity_protects_heartbeats_only(topic: str, expected: bool) -> None:
    assert replicated(topic, EVERYTHING, IDENTITY, "source", "target") is expected


def test_identity_without_an_alias_of_its_own() -> None:
    assert not is_cycle("orders", IdentityReplicationPolicy(), "source", "target")


class GoesRound(DefaultReplicationPolicy):
    """A policy of one's own whose names go round."""

    def upstream_topic(self, topic: str) -> str | None:
        return {"one.orders": "two.orders", "two.orders": "one.orders"}.get(topic)


def test_a_name_that_goes_round_ends() -> None:
    assert list(hops("one.orders", GoesRound())) == ["one", "two"]
    assert not is_cycle("one.orders", GoesRound(), "source", "target")
    assert is_cycle("one.orders", GoesRound(), "source", "two")


@pytest.mark.parametrize("enabled", [True, False])
def test_heartbeats_are_replicated_though_no_filter_names_them(enabled: bool) -> None:
    for topic in ("heartbeats", "us-west.heartbeats"):
        assert (
            replicated(
                topic=topic,
                topic_filter=NOTHING,
                policy=DEFAULT,
                source="source",
                target="target",
                heartbeats_replication_enabled=enabled,
            )
            is enabled
        )
        assert replicated(
            topic=topic,
            topic_filter=EVERYTHING,
            policy=DEFAULT,
            source="source",
            target="target",
            heartbeats_replication_enabled=enabled,
        )
    assert not replicated(
        topic="us-west.heartbeats",
        topic_filter=NOTHING,
        policy=DefaultReplicationPolicy("_"),
        source="source",
        target="target",
        heartbeats_replication_enabled=enabled,
    )


@pytest.mark.parametrize(
    "topic",
    [
        progress_topic("other"),
        mapping_topic("other"),
        "mm2-offset-syncs.west.internal",
        "other.checkpoints.internal",
        "__consumer_offsets",
    ],
)
@pytest.mark.parametrize("policy", [DEFAULT, IDENTITY])
def test_internal_topics_are_never_replicated(topic: str, policy: DefaultReplicationPolicy) -> None:
    assert not replicated(topic, EVERYTHING, policy, "source", "target")


def test_the_filter_matches_whole_names_and_excludes_win() -> None:
    chosen = TopicFilter(("orders", r"events\..*"), (r".*\.tmp",))
    names = ["orders", "orders2", "events.a", "events.a.tmp", "events"]
    assert [name for name in names if chosen.matches(name)] == ["orders", "events.a"]
    assert not NOTHING.matches("orders") and not NOTHING.matches("")


def test_topics_that_keep_a_flows_state() -> None:
    assert progress_topic("east") == "mm2-offsets.east.internal"
    assert mapping_topic("east") == "airmirror-mappings.east.internal"

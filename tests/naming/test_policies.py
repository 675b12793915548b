"""Replication policies against MirrorMaker 2's own tests (TC/ReplicationPolicyTest, T/MirrorSourceConnectorTest)."""

from __future__ import annotations

from pathlib import Path

import pytest

from airmirror.naming import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    UnknownReplicationPolicy,
    policy,
)

DEFAULT = DefaultReplicationPolicy()
IDENTITY = IdentityReplicationPolicy(source_alias="source")


@pytest.mark.parametrize(
    ("topic", "source", "upstream", "original"),
    [
        ("orders", None, None, "orders"),
        ("east.orders", "east", "orders", "orders"),
        ("west.east.orders", "west", "east.orders", "orders"),
        ("orders.v1", "orders", "v1", "v1"),
        ("a.", None, None, "a."),
        (".b", "", "b", "b"),
        (".", None, None, "."),
        ("a..", None, None, "a.."),
        ("a..b", "a", ".b", "b"),
    ],
)
def test_names_are_split_as_java_splits(topic: str, source: str | None, upstream: str | None, original: str) -> None:
    assert DEFAULT.topic_source(topic) == source
    assert DEFAULT.upstream_topic(topic) == upstream
    assert DEFAULT.original_topic(topic) == original


@pytest.mark.parametrize("separator", [".", "_", "__", "-to-"])
def test_a_remote_topic_leads_back(separator: str) -> None:
    named = DefaultReplicationPolicy(separator)
    remote = named.format_remote_topic("west", named.format_remote_topic("east", "orders"))
    assert remote == f"west{separator}east{separator}orders"
    assert (named.topic_source(remote), named.original_topic(remote)) == ("west", "orders")


@pytest.mark.parametrize(
    ("separator", "enabled", "offset_syncs", "checkpoints"),
    [
        (".", True, "mm2-offset-syncs.X.internal", "X.checkpoints.internal"),
        ("__", True, "mm2-offset-syncs__X__internal", "X__checkpoints__internal"),
        ("__", False, "mm2-offset-syncs.X.internal", "X.checkpoints.internal"),
    ],
)
def test_internal_topics(separator: str, enabled: bool, offset_syncs: str, checkpoints: str) -> None:
    named = DefaultReplicationPolicy(separator, enabled)
    assert named.offset_syncs_topic("X") == offset_syncs
    assert named.checkpoints_topic("X") == checkpoints
    assert named.heartbeats_topic() == "heartbeats"
    assert named.is_mm2_internal_topic(offset_syncs)
    assert named.is_checkpoints_topic(checkpoints) and named.is_mm2_internal_topic(checkpoints)


@pytest.mark.parametrize(
    ("topic", "internal"),
    [
        ("mm2-offsets.east.internal", True),
        ("mm2.internal", True),
        ("east.checkpoints.internal", True),
        ("__consumer_offsets", True),
        (".hidden", True),
        ("orders.internal", False),
        ("orders-internal", False),
        ("checkpoints.internal", False),
        ("orders", False),
    ],
)
def test_internal_topics_since_kip_1074(topic: str, internal: bool) -> None:
    assert DEFAULT.is_internal_topic(topic) is internal


@pytest.mark.parametrize(
    ("topic", "heartbeats"),
    [("heartbeats", True), ("west.heartbeats", True), ("a.b.heartbeats", True), ("my-heartbeats", False)],
)
def test_heartbeats(topic: str, heartbeats: bool) -> None:
    assert DEFAULT.is_heartbeats_topic(topic) is heartbeats


def test_identity_leaves_names_alone_but_for_what_ends_with_heartbeats() -> None:
    assert IDENTITY.format_remote_topic("source", "orders") == "orders"
    assert IDENTITY.format_remote_topic("source", "heartbeats") == "source.heartbeats"
    assert IDENTITY.format_remote_topic("source", "my-heartbeats") == "source.my-heartbeats"
    assert (IDENTITY.topic_source("orders"), IDENTITY.upstream_topic("orders")) == ("source", "orders")
    assert (IDENTITY.topic_source("west.heartbeats"), IDENTITY.upstream_topic("west.heartbeats")) == (
        "west",
        "heartbeats",
    )
    assert IDENTITY.topic_source("heartbeats") is None
    assert IDENTITY.original_topic("a.orders") == "a.orders"
    assert IDENTITY.is_heartbeats_topic("west.heartbeats")
    assert IdentityReplicationPolicy().topic_source("orders") is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("org.apache.kafka.connect.mirror.DefaultReplicationPolicy", DefaultReplicationPolicy),
        ("DefaultReplicationPolicy", DefaultReplicationPolicy),
        ("org.apache.kafka.connect.mirror.IdentityReplicationPolicy", IdentityReplicationPolicy),
        ("LegacyReplicationPolicy", IdentityReplicationPolicy),
        ("airmirror.naming.policies:IdentityReplicationPolicy", IdentityReplicationPolicy),
    ],
)
def test_policies_by_name(name: str, expected: type[ReplicationPolicy]) -> None:
    assert policy(name, "_", False, "east") == expected("_", False, "east")  # type: ignore[call-arg]


def test_a_policy_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "upside_down.py").write_text(
        "from airmirror.naming import DefaultReplicationPolicy\n"
        "class Suffix(DefaultReplicationPolicy):\n"
        "    def format_remote_topic(self, source_alias, topic):\n"
        "        return f'{topic}{self.separator}{source_alias}'\n"
        "class Nothing:\n"
        "    def __init__(self, **settings): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert policy("upside_down:Suffix", "-", True, "east").format_remote_topic("east", "orders") == "orders-east"
    with pytest.raises(UnknownReplicationPolicy, match="lacks the methods checkpoints_topic, format_remote_topic"):
        policy("upside_down:Nothing", "-", True, "east")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("com.example.Policy", "Java classes can't run"),
        ("com.example.DefaultReplicationPolicy", "Java classes can't run"),
        ("no_such_module:Policy", "can't be imported"),
        ("airmirror.naming:NoSuchClass", "can't be imported"),
        (":Policy", "can't be imported"),
        ("airmirror.naming:replicated", "unexpected keyword argument"),
    ],
)
def test_unknown_policies(name: str, reason: str) -> None:
    with pytest.raises(UnknownReplicationPolicy, match=reason) as caught:
        policy(name, ".", True, "east")
    assert "IdentityReplicationPolicy" in str(caught.value)

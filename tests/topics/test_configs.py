"""The configs of a remote topic that are changed, those that stay, and why; on real clusters too."""

from __future__ import annotations

from uuid import uuid4

import pytest

from airmirror.clusters.admin.alteration import alter_configs
from airmirror.clusters.admin.client import connect, topic_configs
from airmirror.clusters.admin.creation import create_topics
from airmirror.clusters.admin.description import ConfigChange, ConfigValue, NewTopic
from airmirror.config import Flow, parse
from airmirror.topics.configs import LONGEST, config_differences
from airmirror.topics.sync import apply, look
from airmirror_local.brokers import Broker

CLUSTERS = "clusters = east, west\neast.bootstrap.servers=a:1\nwest.bootstrap.servers=b:1\neast->west.enabled=true\n"


AGGREGATE = "east->west.aggregate = true"


def flow(lines: str = "") -> Flow:
    return parse(f"{CLUSTERS}{lines}", "f").flow("east->west")


def own(value: str) -> ConfigValue:
    return ConfigValue(value, "DYNAMIC_TOPIC_CONFIG")


def default(value: str) -> ConfigValue:
    return ConfigValue(value, "DEFAULT_CONFIG")


def static(value: str) -> ConfigValue:
    return ConfigValue(value, "STATIC_BROKER_CONFIG")


@pytest.mark.parametrize(
    ("key", "source", "target", "lines", "after"),
    [
        ("retention.ms", own("1000"), default("604800000"), "", "1000"),
        ("retention.ms", ConfigValue("7", "DYNAMIC_DEFAULT_BROKER_CONFIG"), default("604800000"), "", "7"),
        ("retention.ms", default("604800000"), own("1000"), "", None),  # an edit by hand does not last
        ("retention.ms", default("604800000"), own("604800000"), "", None),
        ("retention.ms", default("604800000"), static("5"), "use.defaults.from = source", "604800000"),
        ("compression.type", own("zstd"), own("zstd"), "", "producer"),
        ("message.timestamp.after.max.ms", default("3600000"), default("3600000"), "", LONGEST),
        ("message.timestamp.after.max.ms", own("5"), own(LONGEST), "", "5"),
        ("max.message.bytes", static("2000000"), default("1048588"), "", "2000000"),
        ("max.message.bytes", own("2000"), own("3000"), "", "2000"),
        ("max.message.bytes", own("5000"), own("3000"), AGGREGATE, "5000"),
        ("message.timestamp.after.max.ms", own("5"), own("5"), AGGREGATE, LONGEST),
        ("compression.type", own("zstd"), own("zstd"), AGGREGATE, "producer"),
        ("retention.ms", own("1"), own("2"), "sync.topic.configs.interval.seconds = 0", "1"),
    ],
)
def test_what_is_changed(key: str, source: ConfigValue, target: ConfigValue, lines: str, after: str | None) -> None:
    (difference,) = config_differences(flow(lines), "east.orders", {key: source}, {key: target})
    assert difference.change == ConfigChange("east.orders", key, target.value, after)


@pytest.mark.parametrize(
    ("key", "source", "target", "lines", "reason"),
    [
        ("min.insync.replicas", own("2"), default("1"), "", "config.properties.exclude names it"),
        ("retention.ms", own("1"), own("2"), "config.properties.exclude = ret.*", "config.properties.exclude names"),
        ("retention.ms", own("1"), own("2"), "sync.topic.configs.enabled = false", "sync.topic.configs.enabled"),
        ("retention.ms", default("604800000"), static("5"), "", "use.defaults.from = target"),
        ("retention.ms", static("1"), own("2"), "", "brokers' own file"),
        ("x", ConfigValue("1", "DYNAMIC_TOPIC_CONFIG", read_only=True), own("2"), "", "read-only"),
        ("x", ConfigValue(None, "DYNAMIC_TOPIC_CONFIG", sensitive=True), own("2"), "", "can't be read"),
        ("compression.type", own("zstd"), own("producer"), "", "exact copies need producer"),
        ("message.timestamp.type", own("LogAppendTime"), own("CreateTime"), "", "exact copies need CreateTime"),
        ("max.message.bytes", default("1048588"), own("2000000"), "", "at least what the source takes"),
        ("max.message.bytes", own("2000"), own("3000"), AGGREGATE, "at least what the source takes"),
        ("retention.ms", own("3600000"), default("604800000"), AGGREGATE, "set it on the remote topic"),
        ("cleanup.policy", default("delete"), own("compact"), AGGREGATE, "set it on the remote topic"),
        ("retention.ms", own("1"), own("2"), "sync.topic.configs.interval.seconds = -1", "sync.topic.configs.enabled"),
    ],
)
def test_what_stays(key: str, source: ConfigValue, target: ConfigValue, lines: str, reason: str) -> None:
    (difference,) = config_differences(flow(lines), "east.orders", {key: source}, {key: target})
    assert difference.change is None and reason in difference.reason
    assert (difference.source, difference.target) == (source.value, target.value)


@pytest.mark.parametrize(
    ("key", "source", "target"),
    [
        ("retention.ms", own("1"), static("1")),
        ("retention.ms", default("1"), default("1")),
        ("min.insync.replicas", default("1"), own("1")),  # excluded, and equal
        ("compression.type", default("producer"), own("producer")),
        ("message.timestamp.before.max.ms", default(LONGEST), default(LONGEST)),
        ("max.message.bytes", default("1048588"), own("1048588")),
    ],
)
def test_what_does_not_differ(key: str, source: ConfigValue, target: ConfigValue) -> None:
    assert not list(config_differences(flow(), "east.orders", {key: source}, {key: target}))


def test_a_config_that_one_cluster_does_not_know_is_left_alone() -> None:
    assert not list(config_differences(flow(), "r", {"new.key": own("1")}, {"old.key": own("2")}))


@pytest.fixture
def mirror(east: Broker, west: Broker) -> Flow:
    """A flow of one topic, of a name that no other test uses."""
    lines = (
        f"clusters = east, west\neast.bootstrap.servers = {east.bootstrap}\nwest.bootstrap.servers = {west.bootstrap}\n"
        f"east->west.enabled = true\neast->west.topics = configs-{uuid4()}\nheartbeats.replication.enabled = false\n"
        "replication.factor = 1"
    )
    return parse(lines, "f").flow("east->west")


def change(topic: str, **configs: str | None) -> list[ConfigChange]:
    return [ConfigChange(topic, key.replace("_", "."), None, value) for key, value in configs.items()]


def test_configs_follow_the_source_and_each_change_is_reported(mirror: Flow) -> None:
    source, target = connect(mirror.source), connect(mirror.target)
    topic, remote = mirror.topics[0], f"east.{mirror.topics[0]}"
    create_topics(source, [NewTopic(topic, 1, 1, {"retention.ms": "1000000"})])
    apply(mirror, look(mirror))
    assert apply(mirror, look(mirror)).changes == ()  # what was created needs nothing
    alter_configs(source, change(topic, retention_ms="2000000", cleanup_policy="compact", min_insync_replicas="1"))
    alter_configs(target, change(remote, segment_ms="5000000", min_insync_replicas="1"))
    done = apply(mirror, look(mirror))
    assert set(done.configs) == {
        ConfigChange(remote, "cleanup.policy", "delete", "compact"),
        ConfigChange(remote, "retention.ms", "1000000", "2000000"),
        ConfigChange(remote, "segment.ms", "5000000", None),
    }
    assert f"changed {remote}: segment.ms from 5000000 to the cluster's default" in done.changes
    there = topic_configs(target, [remote])[remote]
    assert (there["retention.ms"].value, there["cleanup.policy"].value) == ("2000000", "compact")
    assert not there["segment.ms"].is_own and there["min.insync.replicas"].is_own  # the excluded edit lasts
    assert there["message.timestamp.after.max.ms"].value == LONGEST
    assert apply(mirror, look(mirror)).changes == ()


def test_configs_that_the_target_refuses_hold_up_nothing(mirror: Flow) -> None:
    target = connect(mirror.target)
    topic, other = f"east.{mirror.topics[0]}", f"east.{mirror.topics[0]}-other"
    create_topics(target, [NewTopic(topic, 1, 1), NewTopic(other, 1, 1)])
    done = alter_configs(
        target, [*change(topic, retention_ms="1000", cleanup_policy="nonsense"), *change(other, retention_ms="1000")]
    )
    assert [each.topic for each in done.changes] == [other]
    (refused,) = done.refused
    assert (refused.alias, refused.topic, refused.keys) == ("west", topic, ("retention.ms", "cleanup.policy"))
    assert "config.properties.exclude" in str(refused)
    configs = topic_configs(target, [topic, other])
    assert not configs[topic]["retention.ms"].is_own and configs[other]["retention.ms"].value == "1000"


def test_a_plan_writes_nothing(mirror: Flow) -> None:
    topic = mirror.topics[0]
    create_topics(connect(mirror.source), [NewTopic(topic, 1, 1)])
    create_topics(connect(mirror.target), [NewTopic(f"east.{topic}", 1, 1, {"compression.type": "gzip"})])
    first = look(mirror)
    assert ConfigChange(f"east.{topic}", "compression.type", "gzip", "producer") in first.configs
    assert look(mirror).configs == first.configs

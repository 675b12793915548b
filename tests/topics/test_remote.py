"""The plan for a flow's remote topics: what is created, grown, refused and noted."""

from __future__ import annotations

from pathlib import Path

import pytest

from airmirror.clusters.admin.description import ConfigValue, NewPartitions, NewTopic
from airmirror.config import Flow, parse
from airmirror.topics.configs import ALWAYS, UNLESS_SET, remote_configs
from airmirror.topics.remote import Topic, plan

CLUSTERS = "clusters = east, west\neast.bootstrap.servers=a:1\nwest.bootstrap.servers=b:1\neast->west.enabled=true\n"
APPENDED = {"message.timestamp.type": ConfigValue("LogAppendTime", "DYNAMIC_TOPIC_CONFIG")}


def flow(lines: str = "") -> Flow:
    return parse(f"{CLUSTERS}{lines}", "f").flow("east->west")


def test_new_topics_have_the_sources_partitions() -> None:
    made = plan(flow("replication.factor = 3"), {"orders": Topic(7), "payments": Topic(1)}, {"east.payments": Topic(1)})
    assert made.topics == {"orders": "east.orders", "payments": "east.payments"}
    assert made.create == (NewTopic("east.orders", 7, 3, UNLESS_SET | ALWAYS),)
    assert (made.grow, made.refused, made.notes) == ((), (), ())


def test_partitions_grow_with_the_source_and_never_shrink() -> None:
    made = plan(
        flow(),
        {"grown": Topic(5), "shrunk": Topic(2)},
        {"east.grown": Topic(3), "east.shrunk": Topic(4), "other": Topic(1)},
    )
    assert made.grow == (NewPartitions("east.grown", 3, 5),)
    assert made.notes == ("east.shrunk has 4 partitions, shrunk has 2: nothing is replicated to 2 and above",)
    assert made.create == ()


def test_configs_that_the_target_does_not_know_hold_up_no_topic() -> None:
    source = {"orders": Topic(1, {"of.a.newer.kafka": ConfigValue("1", "DYNAMIC_TOPIC_CONFIG")})}
    older = plan(flow(), source, {}, known_configs={"message.timestamp.type", "compression.type"})
    assert older.create == (NewTopic("east.orders", 1, 2, ALWAYS),)
    assert "of.a.newer.kafka" in plan(flow(), source, {}).create[0].configs


def test_a_plan_for_what_is_there_does_nothing() -> None:
    made = plan(flow(), {"orders": Topic(2)}, {"east.orders": Topic(2)})
    assert (made.create, made.grow, made.refused, made.notes) == ((), (), (), ())


@pytest.mark.parametrize(
    ("topic", "target", "reason"),
    [
        ("n" * 245, {}, "its name has 250 characters, Kafka takes 249"),
        ("orders", {"east_orders": Topic(1)}, "the target has 'east_orders', which differs in '.' and '_' only"),
        ("orders", {"east.orders": Topic(1, APPENDED)}, "would replace every record's time"),
    ],
)
def test_topics_that_cannot_be_replicated(topic: str, target: dict[str, Topic], reason: str) -> None:
    made = plan(flow(), {topic: Topic(1), "fine": Topic(1)}, target)
    (refused,) = made.refused
    assert refused.topic == topic and reason in str(refused)
    assert list(made.topics) == ["fine"]
    assert [new.name for new in made.create] == ["east.fine"]


def test_names_that_kafka_does_not_take() -> None:
    made = plan(flow("replication.policy.separator = /"), {"orders": Topic(1)}, {})
    assert made.create == () and "Kafka takes letters, digits" in made.refused[0].reason


def test_a_name_of_249_characters_is_taken() -> None:
    assert len(plan(flow(), {"n" * 244: Topic(1)}, {}).create[0].name) == 249


def test_two_new_topics_that_collide() -> None:
    made = plan(flow(), {"a.b": Topic(1), "a_b": Topic(1)}, {})
    assert list(made.topics) == ["a.b"]
    assert "'east.a.b', which differs in '.' and '_' only" in made.refused[0].reason


def test_several_topics_with_one_remote_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "all_in_one.py").write_text(
        "from airmirror.naming import DefaultReplicationPolicy\n"
        "class One(DefaultReplicationPolicy):\n"
        "    def format_remote_topic(self, source_alias, topic):\n"
        "        return 'one'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    made = plan(flow("replication.policy.class = all_in_one:One"), {"a": Topic(1), "b": Topic(1)}, {})
    assert made.create == ()
    assert [(refused.topic, refused.remote) for refused in made.refused] == [("a", "one"), ("b", "one")]


SOURCE = {
    "cleanup.policy": ConfigValue("compact", "DYNAMIC_TOPIC_CONFIG"),
    "retention.ms": ConfigValue("1000", "DYNAMIC_BROKER_CONFIG"),
    "segment.bytes": ConfigValue("1073741824", "DEFAULT_CONFIG"),
    "preallocate": ConfigValue("true", "STATIC_BROKER_CONFIG"),
    "secret.config": ConfigValue(None, "DYNAMIC_TOPIC_CONFIG", sensitive=True),
    "remote.config": ConfigValue("x", "DYNAMIC_TOPIC_CONFIG", read_only=True),
    "min.insync.replicas": ConfigValue("2", "DYNAMIC_TOPIC_CONFIG"),
    "compression.type": ConfigValue("zstd", "DYNAMIC_TOPIC_CONFIG"),
    "message.timestamp.type": ConfigValue("LogAppendTime", "DYNAMIC_TOPIC_CONFIG"),
    "message.timestamp.before.max.ms": ConfigValue("9223372036854775807", "DEFAULT_CONFIG"),
    "message.timestamp.after.max.ms": ConfigValue("5", "DYNAMIC_TOPIC_CONFIG"),
    "max.message.bytes": ConfigValue("2000000", "STATIC_BROKER_CONFIG"),
}


def test_configs_of_a_new_remote_topic() -> None:
    assert remote_configs(flow(), SOURCE) == {
        "cleanup.policy": "compact",
        "retention.ms": "1000",
        "message.timestamp.before.max.ms": "9223372036854775807",
        "message.timestamp.after.max.ms": "5",
        "max.message.bytes": "2000000",
        "message.timestamp.type": "CreateTime",
        "compression.type": "producer",
    }


def test_the_sources_defaults_on_demand_and_configs_excluded_by_pattern() -> None:
    configs = remote_configs(flow("use.defaults.from = source\nconfig.properties.exclude = cleanup\\\\..*"), SOURCE)
    assert configs["segment.bytes"] == "1073741824"
    assert configs["min.insync.replicas"] == "2"
    assert "cleanup.policy" not in configs
    assert configs["message.timestamp.type"] == "CreateTime"

"""Remote topics on real clusters: created, grown, left alone, refused; and ACLs that are held back, without a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from uuid import uuid4

import pytest

from airmirror.clusters.admin.acls import Acl, AclRefused
from airmirror.clusters.admin.client import AccessDenied, Admin, ClusterUnreachable, connect, describe, topic_configs
from airmirror.clusters.admin.creation import Created, TopicCreationRefused, create_partitions, create_topics
from airmirror.clusters.admin.description import ConfigValue, NewPartitions, NewTopic
from airmirror.config import Cluster, Flow, parse
from airmirror.topics import sync
from airmirror.topics.remote import TopicPlan
from airmirror.topics.sync import apply, look
from airmirror_local.brokers import Broker


def flow(east: Broker | str, west: Broker | str, prefix: str, lines: str = "replication.factor = 1") -> Flow:
    return parse(
        f"""clusters = east, west
east.bootstrap.servers = {_address(east)}
west.bootstrap.servers = {_address(west)}
east->west.enabled = true
east->west.topics = {prefix}.*
heartbeats.replication.enabled = false
{lines}
""",
        "f",
    ).flow("east->west")


def _address(broker: Broker | str) -> str:
    return broker if isinstance(broker, str) else broker.bootstrap


@pytest.fixture
def prefix() -> str:
    return f"sync-{uuid4()}-"


def test_remote_topics_follow_the_source(east: Broker, west: Broker, prefix: str) -> None:
    mirror, source = (flow(east, west, prefix), connect(Cluster("east", (east.bootstrap,), {})))
    create_topics(source, [NewTopic(f"{prefix}a", 3, 1, {"cleanup.policy": "compact", "max.message.bytes": "2000000"})])
    done = apply(mirror, look(mirror))
    assert done.topics == {f"{prefix}a": f"east.{prefix}a"} and not done.refused
    assert done.changes == (f"created east.{prefix}a with 3 partitions",)
    configs = topic_configs(mirror.target, [f"east.{prefix}a"])[f"east.{prefix}a"]
    assert {name: config.value for name, config in configs.items() if config.source == "DYNAMIC_TOPIC_CONFIG"} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "max.message.bytes": "2000000",
        "message.timestamp.after.max.ms": "9223372036854775807",
        "message.timestamp.before.max.ms": "9223372036854775807",
        "message.timestamp.type": "CreateTime",
    }
    create_partitions(source, [NewPartitions(f"{prefix}a", 3, 5)])
    create_topics(source, [NewTopic(f"{prefix}b", 1, 1)])
    done = apply(mirror, look(mirror))
    assert [more.name for more in done.grown] == [f"east.{prefix}a"]
    topics = describe(mirror.target)
    assert (topics[f"east.{prefix}a"], topics[f"east.{prefix}b"]) == (5, 1)
    nothing = look(mirror)
    assert (nothing.create, nothing.grow, nothing.refused, nothing.configs) == ((), (), (), ())


def test_a_target_that_stamps_records_itself_is_refused(east: Broker, west: Broker, prefix: str) -> None:
    mirror = flow(east, west, prefix)
    create_topics(connect(mirror.source), [NewTopic(f"{prefix}a", 1, 1)])
    create_topics(
        connect(mirror.target), [NewTopic(f"east.{prefix}a", 1, 1, {"message.timestamp.type": "LogAppendTime"})]
    )
    planned = look(mirror)
    assert planned.topics == {}
    assert "set it to CreateTime" in str(planned.refused[0])


def test_a_topic_that_the_target_refuses_is_left_out(east: Broker, west: Broker, prefix: str) -> None:
    mirror = flow(east, west, prefix, "replication.factor = 2")
    create_topics(connect(mirror.source), [NewTopic(f"{prefix}a", 1, 1)])
    done = apply(mirror, look(mirror))
    (refused,) = done.errors
    assert done.topics == {} and done.refused == (str(refused),)
    assert isinstance(refused, TopicCreationRefused)
    assert (refused.alias, refused.topic) == ("west", f"east.{prefix}a")
    assert "set replication.factor" in str(refused)


def test_a_topic_that_can_not_grow_is_copied_as_far_as_it_goes(
    east: Broker, west: Broker, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror, source = flow(east, west, prefix), connect(Cluster("east", (east.bootstrap,), {}))
    create_topics(source, [NewTopic(f"{prefix}a", 1, 1)])
    apply(mirror, look(mirror))
    create_partitions(source, [NewPartitions(f"{prefix}a", 1, 2)])
    refusal = TopicCreationRefused("west", f"east.{prefix}a", "no")
    monkeypatch.setattr(sync, "create_partitions", lambda *_: Created((), (refusal,)))
    done = apply(mirror, look(mirror))
    assert (
        done.topics == {f"{prefix}a": f"east.{prefix}a"}
        and done.errors == (refusal,)
        and done.refused == (str(refusal),)
    )


def test_a_topic_of_somebody_else_may_be_hidden(
    east: Broker, west: Broker, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing of the flow is on the target yet, any topic tells which configs the target has, if we may see it."""
    mirror, asked = flow(east, west, prefix), sync.topic_configs
    create_topics(connect(mirror.source), [NewTopic(f"{prefix}a", 1, 1)])

    def guarded(admin: Admin, names: Sequence[str]) -> dict[str, dict[str, ConfigValue]]:
        if admin.cluster.alias == "west":
            raise AccessDenied("west", "west:1", "not yours")
        return asked(admin, names)

    monkeypatch.setattr(sync, "topic_configs", guarded)
    planned = look(mirror)
    assert [each.name for each in planned.create] == [f"east.{prefix}a"] and planned.configs_unknown


def test_what_allows_is_not_created_where_what_denies_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would open what the source denies; until a later window may create both. Other topics get theirs."""
    asked: list[Acl] = []

    def create(_: object, acls: Sequence[Acl], timeout: float) -> tuple[tuple[Acl, ...], tuple[AclRefused, ...]]:
        asked.extend(acls)
        denies = [acl for acl in acls if acl.permission == "DENY"]
        return tuple(acl for acl in acls if acl not in denies), tuple(AclRefused("west", acl, "many") for acl in denies)

    nothing = SimpleNamespace(topics=(), refused=(), changes=())
    answers = {name: lambda *_: nothing for name in ("create_topics", "create_partitions", "alter_configs")}
    for name, answer in {**answers, "create_acls": create, "connect": lambda _: None}.items():
        monkeypatch.setattr(sync, name, answer)
    here, other = (Acl(f"east.{name}", "LITERAL", "User:ann", "*", "READ", "ALLOW") for name in ("orders", "other"))
    deny = replace(here, principal="User:zoe", permission="DENY")
    planned = TopicPlan({"orders": "east.orders"}, (), (), (), (), acls=(here, other, deny))
    made = apply(flow("a:1", "b:1", "orders"), planned)
    assert (asked, made.acls) == ([deny, other], (other,))
    refused, left = made.warnings
    assert "DENY READ on east.orders" in refused and "no ACL that allows was created for east.orders" in left


def test_no_topic_matches(east: Broker, west: Broker, prefix: str) -> None:
    planned = look(flow(east, west, prefix))
    assert (planned.topics, planned.create) == ({}, ())


def test_a_cluster_that_is_down_is_named(east: Broker, prefix: str) -> None:
    with pytest.raises(ClusterUnreachable, match="cluster 'west' can't be reached"):
        look(flow(east, "127.0.0.1:1", prefix), timeout=5)

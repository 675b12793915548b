"""ACLs of topics and of their remote topics, by the reference's rules and on brokers with Kafka's own authorizer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from tenacity import Retrying, stop_after_delay, wait_fixed

from airmirror.clusters.admin.acls import Acl, NoAuthorizer, create_acls, topic_acls
from airmirror.clusters.admin.client import AccessDenied, Admin, connect
from airmirror.runbooks.migration.plan import DAY_MS, migration_plan
from airmirror.topics.acls import missing_acls, remote_acls
from airmirror.topics.drift import drifts
from airmirror.topics.sync import apply, look
from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from support.flows import mirror
from support.topics import Record, produce

READ = Acl(topic="orders", pattern="LITERAL", principal="User:ann", host="*", operation="READ", permission="ALLOW")
TOPICS = {"orders": "east.orders"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"operation": "DESCRIBE_CONFIGS", "host": "10.0.0.1"}, {"operation": "DESCRIBE_CONFIGS", "host": "10.0.0.1"}),
        ({"operation": "ALL"}, {"operation": "READ"}),  # never more than to read
        ({"operation": "WRITE"}, None),
        ({"operation": "WRITE", "permission": "DENY"}, {"operation": "WRITE", "permission": "DENY"}),
        ({"operation": "ALL", "permission": "DENY"}, {"operation": "ALL", "permission": "DENY"}),
        *(({"operation": name}, None) for name in ("ALTER", "ALTER_CONFIGS", "DELETE", "CREATE", "CLUSTER_ACTION")),
        ({"operation": "DELETE", "permission": "DENY"}, {"operation": "DELETE", "permission": "DENY"}),
        ({"pattern": "PREFIXED"}, None),
        ({"topic": "*"}, None),
        ({"topic": "ord", "pattern": "PREFIXED"}, None),
        # What denies to read does so there too, whatever its pattern; an ALLOW beside it would give what is denied here.
        ({"topic": "*", "operation": "ALL", "permission": "DENY"}, {"operation": "ALL", "permission": "DENY"}),
        ({"topic": "ord", "pattern": "PREFIXED", "permission": "DENY"}, {"permission": "DENY"}),
        ({"topic": "pay", "pattern": "PREFIXED", "permission": "DENY"}, None),
        ({"topic": "*", "operation": "WRITE", "permission": "DENY"}, None),
        ({"topic": "not-replicated"}, None),
    ],
)
def test_what_becomes_of_an_acl(given: dict[str, str], expected: dict[str, str] | None) -> None:
    made = [] if expected is None else [replace(READ, topic="east.orders", **expected)]  # type: ignore[arg-type]
    assert remote_acls(TOPICS, replace(READ, **given)) == made  # type: ignore[arg-type]


def test_only_what_is_missing_is_created() -> None:
    describe = replace(READ, operation="DESCRIBE")
    there = replace(READ, topic="east.orders")
    by_hand = replace(there, principal="User:bob")
    assert missing_acls(TOPICS, {READ, describe}, {there, by_hand}) == (replace(there, operation="DESCRIBE"),)
    assert missing_acls(TOPICS, {READ, replace(READ, operation="ALL")}, set()) == (there,)  # both become one
    first, second = missing_acls(TOPICS, {READ, replace(READ, principal="User:zoe", permission="DENY")}, set())
    assert (first.permission, second.permission) == ("DENY", "ALLOW")


@pytest.fixture(scope="module")
def guarded_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Broker]]:
    directory = tmp_path_factory.mktemp("guarded")
    settings = IMPATIENT | {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    started: list[Broker] = []
    try:
        for name in ("east", "west"):
            started.append(start_broker(directory, name, settings))
        yield started[0], started[1]
    finally:
        for broker in started:
            broker.kill()


def _acl(topic: str, principal: str, operation: str, **other: str) -> Acl:
    return replace(READ, topic=topic, principal=principal, operation=operation, **other)


def test_on_clusters_with_an_authorizer(guarded_brokers: tuple[Broker, Broker], tmp_path: Path) -> None:
    east, west = guarded_brokers
    mirrored = mirror(east, west, tmp_path, partitions=2)
    flow, topic, remote = mirrored.flow, mirrored.topic, mirrored.remote_topic
    source, target = connect(flow.source), connect(flow.target)
    assert topic_acls(source) == frozenset()  # none is not the same as no authorizer
    given = [
        _acl(topic, "User:ann", "READ"),
        _acl(topic, "User:bob", "WRITE"),
        _acl(topic, "User:app", "ALL"),
        _acl(topic, "User:eve", "ALL", permission="DENY"),
        _acl(topic, "User:far", "DESCRIBE", host="10.0.0.1"),
        _acl(topic, "User:pre", "READ", pattern="PREFIXED"),
        _acl("*", "User:any", "READ"),
        _acl("another", "User:ann", "READ"),
    ]
    created, refused = create_acls(source, given)
    assert (set(created), refused) == (set(given), ())
    await_acls(source, given)
    by_hand = _acl(remote, "User:hand", "READ")
    create_acls(target, [by_hand])
    await_acls(target, [by_hand])

    expected = {
        _acl(remote, "User:ann", "READ"),
        _acl(remote, "User:app", "READ"),
        _acl(remote, "User:eve", "ALL", permission="DENY"),
        _acl(remote, "User:far", "DESCRIBE", host="10.0.0.1"),
    }
    planned = look(flow)
    assert set(planned.acls) == expected
    assert {row.source for row in drifts(planned) if row.what == "ACL"} == {str(acl) for acl in expected}
    assert topic_acls(target) == {by_hand}, "a plan writes nothing"

    produce(east, topic, [Record(b"v%d" % number) for number in range(50)])
    mirrored.run()
    assert mirrored.assert_equal() == 50
    await_acls(target, [*expected, by_hand])
    assert topic_acls(target) == {*expected, by_hand}
    plan = migration_plan(mirrored.opened, 7 * DAY_MS)
    (rule,) = [rule for rule in plan.rules if rule.what.startswith("clients may do")]
    assert rule.level == "warn" and rule.evidence.startswith("4 ACLs lacking on west: "), rule
    for lacking in (
        f"WRITE on TOPIC {remote} to User:bob",
        f"ALL on TOPIC {remote} to",
        f"READ on TOPIC {remote} to User:pre",
        "TOPIC * ",
    ):
        assert lacking in rule.evidence
    again = apply(flow, look(flow))
    assert (again.acls, again.changes) == ((), ())

    # one more on the source is one more on the target; what the source takes back stays on the target
    literal, anything = ResourcePatternType.LITERAL, (AclOperation.ANY, AclPermissionType.ANY)
    taken_back = AclBindingFilter(ResourceType.TOPIC, topic, literal, "User:ann", None, *anything)
    (deleted,) = source.client.delete_acls([taken_back]).values()
    assert len(deleted.result()) == 1
    more = _acl(topic, "User:new", "READ")
    create_acls(source, [more])
    await_acls(source, [more])
    assert apply(flow, look(flow)).changes == (f"created ACL: ALLOW READ on {remote} to User:new from host *",)
    await_acls(target, [_acl(remote, "User:new", "READ"), *expected])


def test_not_copied_when_switched_off(guarded_brokers: tuple[Broker, Broker], tmp_path: Path) -> None:
    mirrored = mirror(*guarded_brokers, tmp_path, settings={"sync.topic.acls.enabled": "false"})
    source = connect(mirrored.flow.source)
    create_acls(source, [acl := _acl(mirrored.topic, "User:ann", "READ")])
    await_acls(source, [acl])
    assert apply(mirrored.flow, look(mirrored.flow)).acls == ()
    assert look(mirrored.flow).acls == ()


def test_a_target_without_an_authorizer_says_so_and_holds_up_nothing(
    guarded_brokers: tuple[Broker, Broker], west: Broker, tmp_path: Path
) -> None:
    mirrored = mirror(guarded_brokers[0], west, tmp_path)
    source = connect(mirrored.flow.source)
    create_acls(source, [acl := _acl(mirrored.topic, "User:ann", "READ")])
    await_acls(source, [acl])
    planned = look(mirrored.flow)
    assert planned.acls == () and planned.acls_not_synced == "cluster 'west' has no authorizer, so it has no ACLs"
    done = apply(mirrored.flow, look(mirrored.flow))
    assert done.topics == {mirrored.topic: mirrored.remote_topic} and done.warnings == ()
    with pytest.raises(NoAuthorizer):
        topic_acls(connect(mirrored.flow.target))


def test_who_may_not_see_acls_copies_records_all_the_same(
    guarded_brokers: tuple[Broker, Broker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirrored = mirror(*guarded_brokers, tmp_path)

    def denied(admin: Admin, timeout: float = 0.0) -> frozenset[Acl]:
        raise AccessDenied(admin.cluster.alias, "there:1", "Cluster authorization failed.")

    monkeypatch.setattr("airmirror.topics.sync.topic_acls", denied)
    done = apply(mirrored.flow, look(mirrored.flow))
    assert done.topics == {mirrored.topic: mirrored.remote_topic}
    (warning,) = done.warnings
    assert mirrored.flow.source.alias in warning and "sync.topic.acls.enabled = false" in warning


def await_acls(admin: Admin, acls: list[Acl]) -> None:
    """Until a broker knows what the controller has written."""
    for attempt in Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.02), reraise=True):
        with attempt:
            assert topic_acls(admin) >= set(acls)

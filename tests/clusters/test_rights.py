"""The rights that docs/security.md lists are enough: every feature of its table, by a user who has nothing else."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
)
from tenacity import Retrying, stop_after_delay, wait_fixed

from airmirror.config.pairs import heartbeat_flow
from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import caught_up, prepare
from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.flows.verification import compare_all
from airmirror.offsets.heartbeats import emit_heartbeat
from airmirror.offsets.syncs import emit_offset_syncs
from airmirror.runbooks.failover.order import FailoverOrder
from airmirror.runbooks.failover.undo import undo
from airmirror.windows.resets import Choice
from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from support import ROOT
from support.failovers import DISASTER, fail_over
from support.flows import Mirror, mirror
from support.groups import commit, committed
from support.post_window import emit, sync
from support.topics import Record, admin, create_topic, open_transaction, produce, read_all, set_config

USERS = {"source": "reader", "target": "writer"}  # two, because the ACLs of the one are copied to the other side
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",  # the test itself, and the broker
    "listener.name.open.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.open.plain.sasl.jaas.config": LOGIN
    + "".join(f' user_{user}="of-the-test"' for user in USERS.values())
    + ";",
}
ALLOW = AclPermissionType.ALLOW
SHARED = ("heartbeats", "mm2-offset-syncs.west.internal")  # topics that flows have in common
KINDS = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP, "transactional id": ResourceType.TRANSACTIONAL_ID}
ANYTHING = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)
GUARD = "airmirror-mappings."  # on the source: there is nobody else's flow here that it would tell of
OPERATIONS = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Create": AclOperation.CREATE,
    "Delete": AclOperation.DELETE,
    "Alter": AclOperation.ALTER,
    "Describe": AclOperation.DESCRIBE,
    "AlterConfigs": AclOperation.ALTER_CONFIGS,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
}


def listed(side: str, flow: Mirror) -> list[AclBinding]:
    """The rights of one side that the document lists, for this flow."""
    text = (ROOT / "docs" / "security.md").read_text()
    names = {"orders": flow.topic, "east": flow.flow.source.alias}
    found = []
    for row in re.findall(rf"^\| {side} \|[^|]*\| ([^|]*) \| ([^|]*) \|$", text, re.MULTILINE):
        kind, name = re.fullmatch(r"(topic|group|transactional id|cluster)(?: `(.*)`)?", row[0]).groups()  # type: ignore[union-attr]
        name = re.sub("orders|east", lambda match: names[match[0]], name or "kafka-cluster")
        prefixed = name.endswith("*") and name != "*"
        pattern = ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL
        for operation in row[1].split(", "):
            found.append(
                AclBinding(
                    KINDS.get(kind, ResourceType.BROKER),
                    name.rstrip("*") if prefixed else name,
                    pattern,
                    f"User:{USERS[side]}",
                    "*",
                    OPERATIONS[operation],
                    AclPermissionType.ALLOW,
                )
            )
    assert len(found) > 5, f"the table of docs/security.md is not read any more: {side}"
    return list(dict.fromkeys(found))


def grant(cluster: Broker, rights: Sequence[AclBinding]) -> None:
    for future in admin(cluster).create_acls(list(rights)).values():
        future.result()
    for attempt in Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.05), reraise=True):
        with attempt:
            assert {str(right) for right in rights} <= {
                str(right) for right in admin(cluster).describe_acls(ANYTHING).result()
            }


def take_all(cluster: Broker) -> None:
    """Nobody has no rights when the call returns."""
    for future in admin(cluster).delete_acls([ANYTHING]).values():
        future.result()
    for attempt in Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.05), reraise=True):
        with attempt:
            assert admin(cluster).describe_acls(ANYTHING).result() == []


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Broker]]:
    started: list[Broker] = []
    try:
        for name in ("east", "west"):
            directory = tmp_path_factory.mktemp(name)
            started.append(start_broker(directory, name, IMPATIENT | GUARDED, listeners={"OPEN": "SASL_PLAINTEXT"}))
        yield started[0], started[1]
    finally:
        for broker in started:
            broker.kill()


def access(cluster: Broker, side: str) -> dict[str, str]:
    return {
        "bootstrap.servers": cluster.listeners["OPEN"],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{LOGIN} username="{USERS[side]}" password="of-the-test";',
    }


def use_every_feature(flow: Mirror, east: Broker, west: Broker, group: str) -> None:
    """What the table lists, one after the other; an error or a failed assertion where a right is missing."""
    produce(east, flow.topic, [Record(b"v%d" % number) for number in range(40)], partition=0)
    assert prepare(flow.opened).report.warnings == ()
    assert flow.run().is_verified

    # What changes on the source follows: a partition more, a config, an ACL.
    (grown,) = admin(east).create_partitions([NewPartitions(flow.topic, 2)]).values()
    grown.result()
    set_config(east, flow.topic, "retention.ms", "86400001")
    literal = ResourcePatternType.LITERAL
    grant(east, [AclBinding(ResourceType.TOPIC, flow.topic, literal, "User:ann", "*", AclOperation.READ, ALLOW)])
    report = prepare(flow.opened).report
    assert len(report.changes) == 3 and report.warnings == (), report
    for partition in (0, 1):
        produce(east, flow.topic, [Record(b"w%d" % number) for number in range(20)], partition=partition)
    assert flow.run().is_verified and flow.assert_equal() == 80

    # Groups, offset syncs, heartbeats, verify, reset.
    commit(east, group, {(flow.topic, 0): 30})
    assert emit_offset_syncs(flow.flow, caught_up(flow.opened).ledger, window="syncs") > 0
    assert emit(flow, group) == 1
    assert [row.reason for row in sync(flow.opened, group)] == [""]
    assert committed(west, group) == {(flow.remote_topic, 0): 30}
    assert emit_heartbeat(heartbeat_flow(flow.opened.configuration, flow.flow.name)) == "heartbeats"
    assert sum(row.records for row in compare_all(flow.opened, []) if not row.error) == 80

    # A failover, and its undo: a group that had no position on the target has none again.
    new = f"{group}-new"
    commit(east, new, {(flow.topic, 0): 30})
    assert emit(flow, new) == 1  # so that the ledger has seen it
    fail_over(flow.opened, replace(DISASTER, anyway=True))
    assert committed(west, new) == {(flow.remote_topic, 0): 30}
    undo(flow.opened, FailoverOrder(reason="a false alarm", by="somebody"))
    assert committed(west, new) == {} and committed(west, group) == {(flow.remote_topic, 0): 30}

    again = ResetOrder(
        topics=(flow.topic,), partitions=(), choice=Choice.START_AGAIN, recreate=True, by="somebody", reason="a test"
    )
    assert len(carry_out(flow.opened, again)) == 2
    assert flow.run().is_verified and flow.assert_equal() == 80

    # A transaction that takes long, by its records' times, does not hang: its coordinator knows it.
    with open_transaction(east, flow.topic, [Record(b"v", timestamp=1_700_000_000_000)], partition=0):
        assert flow.run().is_verified


def a_flow(guarded: tuple[Broker, Broker], directory: Path) -> Mirror:
    east, west = guarded
    settings = {"heartbeats.topic.replication.factor": "1"}
    return mirror(east, west, directory, access=(access(east, "source"), access(west, "target")), settings=settings)


def test_every_feature_runs_with_the_rights_that_are_listed(guarded: tuple[Broker, Broker], tmp_path: Path) -> None:
    flow = a_flow(guarded, tmp_path)
    for cluster, side in zip(guarded, ("source", "target"), strict=True):
        take_all(cluster)
        grant(cluster, listed(side, flow))
    create_topic(guarded[0], "nobody-may-see-it")
    use_every_feature(flow, *guarded, group="billing")
    assert read_all(guarded[0], "mm2-offset-syncs.west.internal")[0]


@pytest.mark.long
def test_none_of_the_rights_is_too_much(guarded: tuple[Broker, Broker], tmp_path: Path) -> None:
    """Without any single one of them some feature fails."""
    needless = []
    for side, number in [(side, number) for side in ("source", "target") for number in range(40)]:
        flow = a_flow(guarded, tmp_path)
        rights = {of: listed(of, flow) for of in ("source", "target")}
        if number >= len(rights[side]):
            continue
        left_out = rights[side].pop(number)
        implied = left_out.operation is AclOperation.DESCRIBE_CONFIGS and any(
            right.name == left_out.name and right.operation is AclOperation.ALTER_CONFIGS for right in rights[side]
        )
        if implied or (side == "source" and left_out.name == GUARD):
            continue
        for cluster, of in zip(guarded, rights, strict=True):
            take_all(cluster)
            grant(cluster, rights[of])
        for topic in SHARED:
            with contextlib.suppress(KafkaException):
                (gone,) = admin(guarded[side == "target"]).delete_topics([topic]).values()
                gone.result()
        try:
            use_every_feature(flow, *guarded, group=f"billing-{side}-{number}")
        except (AirmirrorError, AssertionError, ExceptionGroup):
            continue
        needless.append(f"{side}: {left_out}")
    assert not needless, "\n".join(needless)

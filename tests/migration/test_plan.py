"""The plan of a migration on real clusters: what it sees, what it proposes, and that it writes nothing."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from airmirror.clusters.protocol import past_transactions as past
from airmirror.clusters.protocol.past_transactions import past_transactions
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Cluster, MoveGroup
from airmirror.report.canonical import canonical, parsed
from airmirror.report.page import page
from airmirror.runbooks.migration import inventory as taking
from airmirror.runbooks.migration.inventory import take
from airmirror.runbooks.migration.plan import DAY_MS, MigrationPlan, migration_plan
from airmirror.runbooks.migration.shown import shown_plan
from airmirror.topics.names import policy_of
from airmirror_local.brokers import Broker
from airmirror_local.proxy import Proxy
from support.acls import EVERYBODY
from support.flows import Mirror, mirror
from support.following import patiently
from support.groups import commit, member
from support.quotas import set_quota
from support.requests import Seen
from support.topics import Record, admin, create_topic, open_transaction, produce


def levels(plan: MigrationPlan) -> dict[str, str]:
    return {rule.what: rule.level for rule in plan.rules}


def said(plan: MigrationPlan, what: str) -> str:
    (rule,) = [rule for rule in plan.rules if rule.what == what]
    return rule.evidence


@pytest.fixture(autouse=True)
def rates_are_measured_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "MEASURED_SECONDS", 0.1)


@pytest.fixture
def a_user(east: Broker) -> Iterator[str]:
    """A user with SCRAM on the source."""
    name = f"user-{uuid.uuid4().hex[:8]}"
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    made = UserScramCredentialUpsertion(name, info, b"secret")
    for future in admin(east).alter_user_scram_credentials([made]).values():
        future.result(30)
    yield name
    gone = UserScramCredentialDeletion(name, ScramMechanism.SCRAM_SHA_256)
    for future in admin(east).alter_user_scram_credentials([gone]).values():
        future.result(30)


def test_a_shop(
    east: Broker,
    west: Broker,
    east_proxy: Proxy,
    west_proxy: Proxy,
    tmp_path: Path,
    topic: Callable[[str], str],
    a_user: str,
) -> None:
    """Two topics that a transaction ties, a third one, groups of both protocols; every request that is sent only asks."""
    prefix = topic("shop")
    orders, payments = (create_topic(east, f"{prefix}.{name}", 2) for name in ("orders", "payments"))
    produce(east, orders, [Record(b"%d" % n) for n in range(20)], partition=0, transactional="commit")
    flow = mirror(east_proxy.bootstrap, west, tmp_path, topic=orders, through=west_proxy.bootstrap)
    flow = replace(flow, opened=replace(flow.opened, flow=replace(flow.flow, topics=(f"{prefix}.*",))))
    flow.run()
    stock = create_topic(east, f"{prefix}.stock", 2)  # whose remote topic the next window creates, and no plan
    set_quota(east, f"{prefix}-app", "producer_byte_rate", 1e9)
    for name in (payments, stock):
        commit(east, f"{prefix}-idle-{name}", {(name, 0): 0})
    commit(east, f"{prefix}-new", {(orders, 0): 10, (payments, 0): 0})
    with (
        member(east, f"{prefix}-old", payments),
        member(east, f"{prefix}-new", orders, "consumer"),
        open_transaction(east, orders, [Record(b"open")], partition=1) as writer,
    ):
        writer.produce(payments, b"too", partition=0)
        writer.flush()
        seen = Seen()
        east_proxy.on_request = west_proxy.on_request = seen
        plan = migration_plan(flow.opened, 7 * DAY_MS)
    seen.assert_asking("the plan")
    assert seen.keys.keys() >= {9, 16, 29, 35, 48, 50, 61, 65, 66}, "and everything was asked"
    assert not plan.facts.source.unknown and not plan.facts.target.unknown
    inventory(plan, prefix, a_user)
    shop, alone = (each for each in plan.facts.moves if each.topics[0].startswith(prefix))
    assert (shop.topics, shop.configured) == ((orders, payments), False) and alone.topics == (stock,)
    assert shop.groups == (f"{prefix}-idle-{payments}", f"{prefix}-new", f"{prefix}-old")
    assert len(shop.transactional_ids) == 2 and len(shop.ties) == 2
    assert shop.ties[0] == f"group {prefix}-new: 2 topics"
    assert shop.ties[1] in [f"transactional id {name}: 2 topics" for name in shop.transactional_ids]
    found = levels(plan)
    assert found["no transaction is open on the source"] == found["there is a reverse flow"] == "warn"
    assert f"{orders}-1 from 0" in said(plan, "no transaction is open on the source")
    assert found["every user with SCRAM can log in there"] == found["client quotas are the same there"] == "warn"
    assert found["only the flow writes on the target"] == found["transactions stay within a move group"] == "ok"
    assert a_user in said(plan, "every user with SCRAM can log in there")
    # Told apart, the two topics of one transaction stop it.
    split = replace(flow.flow, moves=(MoveGroup("first", (orders,)), MoveGroup("second", (payments, stock))))
    again = migration_plan(replace(flow.opened, flow=split), 7 * DAY_MS)
    assert levels(again)["transactions stay within a move group"] == "stop"
    assert "topics of first, second" in said(again, "transactions stay within a move group")
    assert [each.name for each in again.facts.moves if each.configured] == ["first", "second"]


def inventory(plan: MigrationPlan, prefix: str, user: str) -> None:
    """What was made is in the inventory of the source."""
    source = plan.facts.source
    orders, payments = source.topics[f"{prefix}.orders"], source.topics[f"{prefix}.payments"]
    assert (orders.partitions, orders.replicas, orders.offsets) == (2, 1, 22) and (orders.bytes or 0) > 100
    assert orders.configs["cleanup.policy"] == "delete" and payments.offsets == 1
    assert not any(name.startswith("__") or name.endswith(".internal") for name in source.topics)
    old, new = source.groups[f"{prefix}-old"], source.groups[f"{prefix}-new"]
    assert (old.kind, old.topics, new.kind) == ("classic", (payments.name,), "consumer")
    assert new.topics == (orders.name, payments.name), "what it has committed, and what it reads"
    for group in (old, new):
        assert [(each.client_id, each.host) for each in group.members] == [("rdkafka", "127.0.0.1")]
        assert not group.is_idle
    assert source.groups[f"{prefix}-idle-{payments.name}"].is_idle
    ours = [each for each in source.producers if each.partition.topic.startswith(prefix)]
    assert [(each.partition.topic, each.partition.partition, each.open_from) for each in ours] == [
        (orders.name, 0, -1),
        (orders.name, 1, 0),
        (payments.name, 0, 0),
    ]
    assert [each.last_sequence for each in ours] == [19, 0, 0] and all(each.last_ms > 0 for each in ours)
    (open_,) = [each for each in source.transactions if each.partitions and each.partitions[0].topic.startswith(prefix)]
    assert open_.state == "Ongoing" and [key.topic for key in open_.partitions] == [orders.name, payments.name]
    assert source.users[user] == ("SCRAM-SHA-256",)
    assert [each.value for each in source.quotas if each.whom == f"client-id {prefix}-app"] == [1e9]


def written(flow: Mirror) -> MigrationPlan:
    produce(flow.source, flow.topic, [Record(b"%d" % n) for n in range(10)], partition=0)
    flow.run()
    return migration_plan(flow.opened, 7 * DAY_MS)


def test_records_of_others_on_the_target_stop(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Also those that a producer wrote whom no leader remembers."""
    flow = mirror(east, west, tmp_path)
    assert levels(written(flow))["only the flow writes on the target"] == "ok"
    produce(west, flow.remote_topic, [Record(b"foreign")], partition=0)
    plan = migration_plan(flow.opened, 7 * DAY_MS)
    assert levels(plan)["only the flow writes on the target"] == "stop"
    assert flow.remote_topic in said(plan, "only the flow writes on the target")


def test_the_page_escapes_what_others_wrote(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    flow, group = mirror(east, west, tmp_path), topic("<img src=x onerror=alert(1)>")
    commit(east, group, {(flow.topic, 0): 0})
    plan = migration_plan(flow.opened, 7 * DAY_MS)
    told = shown_plan(plan).as_dict() | {"signer": None}
    text = page(told)
    assert "<img" not in text and "<script" not in text and "&lt;img" in text and "http" not in text
    assert parsed(canonical(told))["asked"] == {"flow": flow.flow.name}
    assert levels(plan)["a flow replicates them"] == "stop"


def test_a_rate_is_measured(east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = mirror(east, west, tmp_path)
    listed = Routes.refresh

    def and_more(self: Routes, topics: object) -> None:
        listed(self, topics)  # type: ignore[arg-type]
        if topics == []:  # groups are listed after the logs' ends were read for the first time
            produce(east, flow.topic, [Record(b"more")], partition=0)

    monkeypatch.setattr(Routes, "refresh", and_more)
    found = take(flow.flow.source, "test", policy_of(flow.flow)).topics[flow.topic]
    assert found.rate > 0 and found.offsets >= 1


def test_transactions_that_have_ended_are_read_from_the_clusters_log(
    east: Broker, topic: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No transaction is open any more."""
    orders, payments, name = create_topic(east, topic("orders")), create_topic(east, topic("payments")), topic("shop")
    producer = Producer({"bootstrap.servers": east.bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(30)
    for chosen in (orders, payments):
        producer.begin_transaction()
        producer.produce(chosen, b"one")
        producer.commit_transaction(30)
    with Routes(Cluster("east", (east.bootstrap,), {}), "test") as routes:
        assert past_transactions(routes)[name] == {orders, payments}
        monkeypatch.setattr(past, "PAST_MS", -60_000)
        assert name not in past_transactions(routes), "too long ago"


def test_a_user_that_may_not_read_the_clusters_log_is_told(guarded: list[Broker], topic: Callable[[str], str]) -> None:
    east, orders = guarded[0], topic("orders")
    produce(east, create_topic(east, orders), [Record(b"one")], partition=0, transactional="commit")
    state = (ResourceType.TOPIC, past.TRANSACTION_STATE, ResourcePatternType.LITERAL, EVERYBODY, "*", AclOperation.READ)
    for future in admin(east).create_acls([AclBinding(*state, AclPermissionType.DENY)]).values():
        future.result(30)
    try:
        with Routes(Cluster("east", (east.bootstrap,), {}), "test") as routes:
            for attempt in patiently():  # until the broker has the ACL
                with attempt:
                    found, why = taking._past(routes)
                    assert found == {} and "TOPIC_AUTHORIZATION_FAILED" in why
    finally:
        gone = AclBindingFilter(*state, AclPermissionType.DENY)
        for future in admin(east).delete_acls([gone]).values():
            future.result(30)

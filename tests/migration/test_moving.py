"""Move groups: what the configuration names, and what is proposed out of the ties between topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from airmirror.clusters.protocol.described import AclBinding
from airmirror.clusters.protocol.producers import ActiveProducer, KnownTransaction
from airmirror.config import MoveGroup
from airmirror.partitions import TopicPartition
from airmirror.runbooks.failback.pair import Pair
from airmirror.runbooks.migration import steps
from airmirror.runbooks.migration.chosen import Move
from airmirror.runbooks.migration.inventory import GroupFacts, Inventory, TopicFacts
from airmirror.runbooks.migration.moving import move_groups, readers, writers
from airmirror.wire.owners import OrderScope, Owner, Owners, Ownership
from support.migrations import ORDER


def topic(name: str, **configs: str) -> TopicFacts:
    return TopicFacts(name, 1, 1, 0, 0, 0.0, configs)


def cluster(
    topics: tuple[str, ...] = ("orders", "payments", "stock", "audit"),
    groups: Mapping[str, tuple[str, ...]] | None = None,
    **more: object,
) -> Inventory:
    """A made-up inventory of a cluster."""
    facts: dict[str, object] = {
        "alias": "east",
        "cluster_id": "id",
        "brokers": ("one:9092",),
        "topics": {name: topic(name) for name in topics},
        "groups": {name: GroupFacts(name, "Empty", "classic", "consumer", its) for name, its in (groups or {}).items()},
        "producers": (),
        "transactions": (),
        "acls": None,
        "quotas": (),
        "users": {},
    }
    return Inventory(**facts | more)  # type: ignore[arg-type]


def producer(topic: str, number: int, open_from: int = -1) -> ActiveProducer:
    return ActiveProducer(TopicPartition(topic, 0), number, 0, 7, 1_700_000_000_000, open_from)


def transaction(name: str, number: int, *open_in: str) -> KnownTransaction:
    partitions = tuple(TopicPartition(topic, 0) for topic in open_in)
    return KnownTransaction(name, number, "Ongoing" if open_in else "CompleteCommit", partitions)


def test_transactions_that_have_ended_tie_topics_too() -> None:
    source = cluster(past={"shop": ("orders", "stock"), "airmirror.a.b.0": ("audit", "stock"), "old": ("deleted",)})
    assert writers(source) == {"shop": {"orders", "stock"}}
    assert ("orders", "stock") in [each.topics for each in move_groups(source, source.topics, ())]


def test_topics_of_one_group_or_one_transactional_id_belong_together() -> None:
    source = cluster(
        groups={"billing": ("orders", "payments"), "counting": ("stock",)},
        producers=(producer("payments", 1), producer("audit", 1), producer("stock", 2)),
        transactions=(transaction("shop", 1),),
    )
    first, second = move_groups(source, source.topics, ())
    assert (first.name, first.configured, first.topics) == ("audit", False, ("audit", "orders", "payments"))
    assert (first.groups, first.transactional_ids) == (("billing",), ("shop",))
    assert first.ties == ("group billing: 2 topics", "transactional id shop: 2 topics")
    assert (second.topics, second.groups, second.ties) == (("stock",), ("counting",), ())


def test_an_open_transaction_ties_topics_before_it_ends() -> None:
    source = cluster(transactions=(transaction("shop", 1, "orders", "stock"),))
    assert writers(source) == {"shop": {"orders", "stock"}}
    assert ("orders", "stock") in [each.topics for each in move_groups(source, source.topics, ())]


def test_the_flows_own_transactions_tie_nothing() -> None:
    source = cluster(transactions=(transaction("airmirror.west.east.0", 1, "orders", "stock"),))
    assert writers(source) == {} and len(move_groups(source, source.topics, ())) == 4


def test_a_streams_application_brings_its_internal_topics() -> None:
    internal = ("app-store-changelog", "app-by-key-repartition", "apple-changelog")
    source = cluster(("orders", *internal), {"app": ("orders",)})
    assert readers(source) == {"app": {"orders", *internal[:2]}}
    assert [each.topics for each in move_groups(source, source.topics, ())] == [
        ("app-by-key-repartition", "app-store-changelog", "orders"),
        ("apple-changelog",),
    ]


def test_what_the_configuration_names_comes_first_and_the_rest_is_discovered() -> None:
    source = cluster(
        groups={"billing": ("orders", "payments"), "audit-1": ("audit",)},
        producers=(producer("orders", 1),),
        transactions=(transaction("shop-1", 1), transaction("shop-2", 2)),
        acls=(
            AclBinding("TOPIC", "ord", "PREFIXED", "User:ann", "*", "WRITE", "ALLOW"),
            AclBinding("TOPIC", "orders", "LITERAL", "User:bob", "*", "DESCRIBE", "ALLOW"),
            AclBinding("TOPIC", "orders", "LITERAL", "User:eve", "*", "READ", "DENY"),
        ),
    )
    shop, *rest = move_groups(source, source.topics, [MoveGroup("shop", ("orders", "pay.*"))])
    assert (shop.name, shop.configured, shop.topics) == ("shop", True, ("orders", "payments"))
    assert (shop.groups, shop.transactional_ids, shop.principals) == (("billing",), ("shop-1",), ("User:ann",))
    assert [each.topics for each in rest] == [("audit",), ("stock",)]
    named = MoveGroup("shop", ("orders",), ("audit-.*",), ("shop-.*",), ("User:me",))
    shop = move_groups(source, source.topics, [named])[0]
    assert (shop.groups, shop.transactional_ids, shop.principals) == (("audit-1",), ("shop-1", "shop-2"), ("User:me",))
    nobody = move_groups(source, source.topics, [MoveGroup("shop", ("orders",), (), (), ())])[0]
    assert (nobody.groups, nobody.transactional_ids, nobody.principals) == ((), (), ())


def test_only_what_the_flow_replicates_is_proposed_and_names_are_free() -> None:
    source = cluster(("a.b", "a-b", "c"))
    assert [each.name for each in move_groups(source, {"a.b", "a-b"}, [MoveGroup("x", ("none",))])] == [
        "x",
        "a-b",
        "a-b-2",
    ]


def test_a_step_leaves_alone_what_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that matches since is moved by itself; the end is that of the whole move group."""
    moved = Ownership("orders", Owner.RETURNING, OrderScope.TOPIC, "east.orders", "w", 1, 1, 1, "moved", "ada")
    move = Move("shop", {"orders": "east.orders", "stock": "east.stock"}, (), None)
    for name in ("caught_up", "check_open", "chosen_move", "owners_now"):
        found = {"chosen_move": move, "owners_now": Owners.of([moved])}.get(name)
        monkeypatch.setattr(steps, name, lambda *_, found=found, **__: found)
    asked = dict[str, list[str]]()
    for step in steps.WORK:
        monkeypatch.setitem(
            steps.WORK, step, lambda _pair, its, *_, step=step: [asked.setdefault(step, [*its.names])][:0]
        )
        steps.take(step, Pair(cast(Any, None), None), ORDER)
    assert asked == {step: ["stock"] for step in steps.WORK} | {"finish": ["orders", "stock"]}

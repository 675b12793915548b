"""Each rule of a migration's plan: ready where all is well, and what it says where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from airmirror.clusters.admin.members import Member
from airmirror.clusters.protocol.described import AclBinding, Quota
from airmirror.offsets.translation import Reason
from airmirror.report.document import Finding
from airmirror.runbooks.failover.groups import GroupPoint
from airmirror.runbooks.migration import rules_clients, rules_flow, rules_topics
from airmirror.runbooks.migration.access import missing_bindings
from airmirror.runbooks.migration.facts import MigrationFacts
from airmirror.runbooks.migration.inventory import GroupFacts
from airmirror.runbooks.migration.moving import Moving
from airmirror.slot.errors import PartitionFailed
from airmirror.topics.remote import RefusedTopic, TopicPlan
from airmirror.windows.plan import Planned
from migration.test_moving import cluster, producer, topic, transaction
from support.flows import a_flow
from support.ledgers import mapping

DAY = 86_400_000


def planned(name: str = "orders", **more: Any) -> Planned:
    facts = {"start": 100, "end": 100, "high_watermark": 100, "last": mapping(0, 100)}
    return Planned(topic=name, partition=0, remote_topic=f"east.{name}", **facts | more)


def point(**more: Any) -> GroupPoint:
    facts: dict[str, Any] = {"group": "billing", "topic": "orders", "partition": 0, "position": 5, "seen_ms": 0}
    facts |= {"remote_topic": "east.orders", "translation": 5, "exact": True, "again": 0, "reason": ""}
    return GroupPoint(**facts | {"on_target": None, "state": ""} | more)


def facts(**more: Any) -> MigrationFacts:
    """A flow of two topics where all is well."""
    moves = [Moving(name, True, (name,), (), (), ()) for name in ("orders", "stock")]
    given: dict[str, Any] = {
        "flow": a_flow("east"),
        "source": cluster(("orders", "stock"), {"billing": ("orders",)}),
        "target": replace(cluster(("east.orders", "east.stock")), alias="west"),
        "topics": TopicPlan({"orders": "east.orders", "stock": "east.stock"}, (), (), (), ()),
        "planned": [planned(), planned("stock")],
        "groups": [point()],
        "moves": moves,
        "unverified": 0,
        "held": [],
        "foreign": [],
        "returning": set(),
        "copies": 1000.0,
        "takes_ms": 7 * DAY,
        "has_reverse": True,
    }
    return MigrationFacts(**given | more)


def judged(given: MigrationFacts) -> Iterator[Finding]:
    for room in (rules_flow, rules_topics, rules_clients):
        yield from room.rules(given)


def not_ready(given: MigrationFacts) -> list[Finding]:
    return [rule for rule in judged(given) if rule.level != "ok"]


def configured(here: dict[str, str], there: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """Facts with these configs of orders, and of its remote topic."""
    base = facts()
    source = replace(base.source, topics=dict(base.source.topics) | {"orders": topic("orders", **here)})
    remote = topic("east.orders", **(here if there is None else there))
    target = replace(base.target, topics=dict(base.target.topics) | {"east.orders": remote})
    return {"source": source, "target": target} | more


def grouped(side: str, name: str, kind: str = "classic", protocol: str = "consumer", *topics: str) -> dict[str, Any]:
    """Facts with a group more on one side."""
    state = "Stable"
    members = (Member(name, "app-1", "10.0.0.7", ()),)
    inventory = getattr(facts(), side)
    group = GroupFacts(name, state, kind, protocol, topics, members)
    return {side: replace(inventory, groups=dict(inventory.groups) | {name: group})}


def test_all_is_well_and_every_rule_says_so() -> None:
    found = list(judged(facts()))
    assert len(found) == 25 and len({rule.what for rule in found}) == 25
    assert all(rule.level == "ok" and rule.evidence and not rule.way_out for rule in found), found


ERROR = PartitionFailed("east", "orders", 0, "it is broken")
LITERAL = AclBinding("TOPIC", "orders", "LITERAL", "User:ann", "*", "WRITE", "ALLOW")
QUOTA = Quota((("client-id", "app"), ("user", None)), "producer_byte_rate", 1e6)
NAMED = TopicPlan({"stock": "east.stock"}, (), (), (RefusedTopic("east", "west", "orders", "x" * 250, "too long"),), ())
CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("no flow yet", {"planned": [planned(last=None)]}, "stop", "east->west has replicated nothing yet"),
    ("not replicated", {"source": cluster(("orders", "stock", "x"), {"g": ("x",)})}, "warn", "not replicated: x"),
    ("names", {"topics": NAMED}, "stop", "too long"),
    ("held", {"held": ["orders-0"]}, "stop", "held: orders-0"),
    ("not verified", {"unverified": 3}, "warn", "3 committed transactions"),
    ("slow", {"planned": [planned(high_watermark=90_000)], "copies": 10.0}, "warn", "gone in 8,990 s"),
    ("unmeasured", {"planned": [planned(high_watermark=200)], "copies": 0.0}, "warn", "no window has copied yet"),
    ("error", {"planned": [planned(error=ERROR), planned("stock")]}, "stop", "it is broken"),
    ("foreign records", {"foreign": ["orders-0 holds others' records"]}, "stop", "others' records"),
    (
        "foreign producer",
        {"target": replace(facts().target, producers=(producer("east.orders", 9),))},
        "stop",
        "east.orders-0 by producer 9 (without a transactional id)",
    ),
    (
        "open transaction",
        {
            "source": cluster(
                ("orders", "stock"), producers=(producer("orders", 1, 42),), transactions=(transaction("shop", 1, "orders"),)
            )
        },
        "warn",
        "orders-0 from 42 by shop",
    ),
    ("no reverse flow", {"has_reverse": False}, "warn", "without a flow west->east"),
    ("hidden", {"source": replace(facts().source, unknown={"sizes of logs": "denied"})}, "warn", "east: sizes of logs (denied)"),
    ("compacted", configured({"cleanup.policy": "compact"}), "warn", "1 compacted topic: the target's cleaner"),
    (
        "cleaned at once",
        configured({"cleanup.policy": "compact", "min.compaction.lag.ms": "9"}, {"min.compaction.lag.ms": "0"}),
        "stop",
        "orders (min.compaction.lag.ms 9, there 0)",
    ),
    ("append time", configured({"message.timestamp.type": "LogAppendTime"}, {}), "warn", "orders on east"),
    ("retention here", configured({"retention.ms": f"{DAY}"}, {"retention.ms": "-1"}), "warn", "orders on east: 24 h"),
    ("retention there", configured({"retention.ms": "-1"}, {"retention.ms": "0"}), "warn", "east.orders on west: 0 h"),
    (
        "partitions",
        {"target": replace(cluster(()), topics={"east.orders": replace(topic("east.orders"), partitions=3)})},
        "stop",
        "orders: 1, east.orders: 3",
    ),
    (
        "tied by transactions",
        {
            "source": cluster(
                ("orders", "stock"),
                producers=(producer("orders", 1), producer("stock", 1)),
                transactions=(transaction("shop", 1),),
            )
        },
        "stop",
        "transactional id shop: topics of orders, stock",
    ),
    (
        "tied to what stays",
        {
            "source": cluster(
                ("orders", "x"), producers=(producer("orders", 1), producer("x", 1)), transactions=(transaction("shop", 1),)
            )
        },
        "stop",
        "transactional id shop of orders: x",
    ),
    (
        "group of two",
        {"source": cluster(("orders", "stock"), {"g": ("orders", "stock")})},
        "stop",
        "group g: topics of orders, stock",
    ),
    ("group of what stays", {"source": cluster(("orders", "x"), {"g": ("orders", "x")})}, "warn", "group g of orders: x"),
    ("lost position", {"groups": [point(reason=Reason.NOT_COVERED, translation=None)]}, "stop", "billing in orders-0"),
    ("estimated", {"groups": [point(exact=False)]}, "warn", "estimated"),
    ("read again", {"groups": [point(again=7)]}, "warn", "7 offsets are not verified yet"),
    ("active there", grouped("target", "billing", "classic", "consumer", "east.orders"), "stop", "billing (app-1 at 10.0.0.7)"),
    ("streams", {"source": cluster(("orders", "stock", "app-x-changelog"), {"app": ()})}, "warn", "1 internal topic of Streams"),
    ("connect", grouped("source", "connect-cluster", "classic", "connect"), "warn", "connect-cluster"),
    ("share", grouped("source", "sharing", "share", "share"), "stop", "share groups: sharing"),
    (
        "no authorizer there",
        {"source": replace(facts().source, acls=(LITERAL,))},
        "warn",
        "west has no authorizer: what 1 ACL forbid on east",
    ),
    (
        "ACLs",
        {"source": replace(facts().source, acls=(LITERAL,)), "target": replace(facts().target, acls=())},
        "warn",
        "1 ACL lacking on west: ALLOW WRITE on TOPIC east.orders to User:ann from *",
    ),
    ("users", {"source": replace(facts().source, users={"ann": ("SCRAM-SHA-256",)})}, "warn", "ann (SCRAM-SHA-256)"),
    ("quotas", {"source": replace(facts().source, quotas=(QUOTA,))}, "warn", "client-id app, user (default): producer_byte_rate"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "level", "said"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_wrong_is_said_with_the_way_out(given: dict[str, Any], level: str, said: str) -> None:
    found = not_ready(facts(**given))
    assert found, "every rule is ready"
    rule = next(rule for rule in found if said in rule.evidence)
    assert rule.level == level and rule.way_out
    others = {each.what for each in found if each is not rule}
    assert others <= {"everything in use is replicated"}, "one thing is wrong, and one rule says so"


def test_what_has_come_from_the_target_is_nothing_that_stays() -> None:
    source = cluster(("orders", "west.orders"), {"g": ("orders", "west.orders")})
    assert not not_ready(facts(source=source, returning={"west.orders"}))
    assert len(not_ready(facts(source=source))) == 2


def test_a_users_own_producer_on_the_target_is_not_the_flows() -> None:
    """The flow's own has a transactional id of the flow."""
    names = (transaction("airmirror.east.west.0", 9), transaction("shop", 8))
    target = replace(facts().target, producers=(producer("east.orders", 9),), transactions=names)
    assert not not_ready(facts(target=target))
    (found,) = not_ready(facts(target=replace(target, producers=(producer("east.orders", 8),))))
    assert "producer 8 (shop)" in found.evidence


def test_acls_that_lack_have_the_names_of_the_target() -> None:
    others = (
        replace(LITERAL, name="not-ours"),
        replace(LITERAL, name="*"),
        replace(LITERAL, name="or", pattern="PREFIXED", operation="READ"),
        replace(LITERAL, name="zz", pattern="PREFIXED"),
        AclBinding("GROUP", "billing", "LITERAL", "User:ann", "*", "READ", "ALLOW"),
        AclBinding("TRANSACTIONAL_ID", "shop", "PREFIXED", "User:ann", "*", "WRITE", "DENY"),
    )
    there = AclBinding("TOPIC", "east.orders", "LITERAL", "User:ann", "*", "WRITE", "ALLOW")
    found = missing_bindings((LITERAL, *others), (there,), facts().remote)
    assert [(acl.resource, acl.pattern, acl.name) for acl in found] == [
        ("TRANSACTIONAL_ID", "PREFIXED", "shop"),  # what denies comes first
        ("GROUP", "LITERAL", "billing"),
        ("TOPIC", "LITERAL", "*"),
        ("TOPIC", "LITERAL", "east.orders"),
    ]


UNKNOWN = {
    "ACLs": 1,
    "users with SCRAM": 1,
    "client quotas": 1,
    "configs of topics": 3,
    "producers": 4,
    "transactional ids": 2,
    "groups": 3,
    "positions of groups": 1,
}


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("what", UNKNOWN)
def test_what_is_not_known_is_never_ready(what: str, side: str) -> None:
    """The rule about what this user may see, and each one that would be ready only because nothing was seen."""
    hidden = replace(getattr(facts(), side), unknown={what: "denied"})
    found = not_ready(facts(**{side: hidden}))
    assert {rule.level for rule in found} == {"warn"} and all(rule.way_out for rule in found)
    assert sum(rule.evidence.startswith("not known, for want of") for rule in found) == UNKNOWN[what]
    assert len(found) == UNKNOWN[what] + 1


def test_configs_that_the_target_hides_are_not_compared() -> None:
    given = configured({"cleanup.policy": "compact", "min.compaction.lag.ms": "0"}, {})
    given["target"] = replace(given["target"], unknown={"configs of topics": "denied"})
    assert {rule.level for rule in not_ready(facts(**given))} == {"warn"}


def test_acls_of_a_target_that_hides_its_own_are_not_known() -> None:
    base = facts()
    given = facts(
        source=replace(base.source, acls=(LITERAL,)), target=replace(base.target, acls=None, unknown={"ACLs": "denied"})
    )
    assert [rule.evidence for rule in not_ready(given)] == [
        "not known: west: ACLs (denied)",
        "not known, for want of ACLs of west",
    ]


def test_names_are_bounded() -> None:
    (rule,) = not_ready(facts(held=[f"orders-{number}" for number in range(100)]))
    assert rule.evidence.endswith("and 95 more")


def test_transactions_that_have_ended() -> None:
    """They count as those that are open do; where they may not be read, that is said, and nothing warns."""
    source = facts().source
    (stop,) = not_ready(facts(source=replace(source, past={"shop": ("orders", "stock")})))
    assert stop.level == "stop" and "transactional id shop: topics of orders, stock" in stop.evidence
    unread = facts(source=replace(source, past_unknown="READ is lacking"))
    (said,) = [rule for rule in judged(unread) if rule.what == "transactions stay within a move group"]
    assert said.level == "ok" and "transactions that have ended were not read: READ is lacking" in said.evidence

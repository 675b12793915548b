"""Blocks on a move group's topics: who is refused, that nothing of it reaches the target, that it comes down as it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from airmirror.clusters.admin.acls import Acl, NoAuthorizer
from airmirror.config import parse
from airmirror.flows import prepare as preparing
from airmirror.flows.freezing import owners_now
from airmirror.flows.prepare import Opened
from airmirror.ledger import Ledger
from airmirror.runbooks.errors import CannotUndo
from airmirror.runbooks.migration import blocking
from airmirror.runbooks.migration.blocking import BlockRefused
from airmirror.runbooks.migration.undo import undo_move, undo_plan
from airmirror.topics.remote import TopicPlan
from airmirror.wire.moves import ProducerBlock
from airmirror_local.brokers import Broker
from support.acls import EVERYBODY
from support.failovers import elsewhere
from support.flows import Mirror
from support.following import numbered
from support.killing import killed_at
from support.ledgers import MAPPINGS, TOPIC_ID, written
from support.migrations import ORDER, move_of, moving, takes
from support.returns import FORWARD, forward_and_reverse, write
from support.topics import admin, create_topic, delete_all_topics, open_transaction, produce


def acls_of(cluster: Broker, topic: str) -> list[str]:
    """The ACLs of a topic, as operation and permission."""
    every = AclBindingFilter(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    found = admin(cluster).describe_acls(every).result(30)
    return sorted(f"{each.permission_type.name} {each.operation.name}" for each in found)


def undone(flow: Mirror) -> None:
    undo_move(flow.opened, move_of(flow.opened), ORDER, lambda phase: None)


def test_a_block_is_copied_by_no_other_flow_from_there(tmp_path: Path) -> None:
    aliases = ("east", "west", "north")
    servers = "".join(f"{alias}.bootstrap.servers = {alias}:1\n" for alias in aliases)
    lines = f"clusters = {', '.join(aliases)}\n{servers}east->west.enabled = true\neast->north.enabled = true"
    configuration = parse(lines, "test")
    planned = TopicPlan({"orders": "east.orders"}, (), (), (), ())
    denial, other = (Acl("east.orders", "LITERAL", f"User:{who}", "*", "WRITE", "DENY") for who in ("shop", "stranger"))
    block = ProducerBlock(topic="orders", principal="User:shop", move="shop", time_ms=7, by="ann")
    with Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        ledger.flow("east->west").load(MAPPINGS, TOPIC_ID, [written(0, block)], {0: 1})
        opened = Opened(configuration, configuration.flow("east->north"), ledger.flow("east->north"))
        assert preparing._without_blocks(opened, replace(planned, acls=(denial, other))) == (other,)


@pytest.mark.long
def test_killed_while_it_goes_up(guarded: list[Broker], tmp_path: Path) -> None:
    east, west = guarded
    flow, _ = moving(east, west, tmp_path, move_block_producers="acl", move_shop_principals=EVERYBODY)
    produce(east, flow.topic, numbered(10), partition=0)
    takes(flow.opened, "mirror")
    with killed_at(blocking, "_put", after=True):
        takes(elsewhere(flow.opened, tmp_path), "cut_over_producers")
    takes(elsewhere(flow.opened, tmp_path), "cut_over_producers")
    undone(replace(flow, opened=elsewhere(flow.opened, tmp_path)))
    assert acls_of(east, flow.topic) == [], "what it had put up is known to be its own"


def test_it_comes_down_alone_when_an_undo_is_too_late(guarded: list[Broker], tmp_path: Path) -> None:
    """Producers have written over there; applications that return must get into the topics of the source."""
    east, west = guarded
    flow, _ = moving(east, west, tmp_path, move_block_producers="acl", move_shop_principals=EVERYBODY)
    produce(east, flow.topic, numbered(10), partition=0)
    takes(flow.opened, "mirror", "cut_over_producers")
    produce(west, flow.remote_topic, numbered(2, 100), partition=0)
    with pytest.raises(CannotUndo):
        undone(flow)
    assert acls_of(east, flow.topic) == ["DENY WRITE"], "nothing was changed"
    move, order = move_of(flow.opened), replace(ORDER, unblock=True)
    [down] = undo_move(flow.opened, move, order, lambda phase: None).blocks
    assert down.topic == flow.topic and undo_plan(flow.opened, move, order).blocks == ()
    assert acls_of(east, flow.topic) == [] and owners_now(flow.opened).why_frozen(flow.topic)


def test_a_cluster_without_acls_can_not_block_by_them(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = moving(east, west, tmp_path, move_block_producers="acl", move_shop_principals=EVERYBODY)
    with pytest.raises(NoAuthorizer):
        takes(flow.opened, "cut_over_producers")
    assert flow.opened.ledger.of_kind(ProducerBlock) == []


def test_principals_are_denied_on_the_source_alone(guarded: list[Broker], tmp_path: Path) -> None:
    """Whoever has begun a transaction can end it: it was written, so it is replicated. No window copies the denial."""
    east, west = guarded
    settings = {"move_block_producers": "acl", "move_shop_principals": EVERYBODY, "move_quiet_ms": "500"}
    flow, _ = moving(east, west, tmp_path, **settings)
    produce(east, flow.topic, numbered(10), partition=0)
    takes(flow.opened, "mirror")
    with open_transaction(east, flow.topic, numbered(5, 10), partition=0) as producer:
        blocking.block_producers(flow.opened, move_of(flow.opened), ORDER)
        producer.commit_transaction(30)
        assert flow.run().is_verified
        said = takes(flow.opened, "cut_over_producers", order=replace(ORDER, wait=30.0))
    assert said[0] == f"blocked: {flow.topic}: {EVERYBODY} is denied WRITE"
    assert acls_of(east, flow.topic) == ["DENY WRITE"] and acls_of(west, flow.remote_topic) == []
    with pytest.raises(AssertionError, match="TOPIC_AUTHORIZATION_FAILED"):
        produce(east, flow.topic, numbered(1, 15), partition=0)
    assert flow.assert_equal() == 15
    undone(flow)
    assert acls_of(east, flow.topic) == []
    produce(east, flow.topic, numbered(5, 15), partition=0)
    assert flow.run().is_verified and flow.assert_equal() == 20


@pytest.fixture
def emptied(guarded: list[Broker]) -> Iterator[list[Broker]]:
    """The two clusters without the topics of other tests, whose flows know them by other aliases."""
    for broker in guarded:
        delete_all_topics(broker)
    yield guarded
    for broker in guarded:
        delete_all_topics(broker)


def test_an_undo_takes_it_down_before_anything_returns(emptied: list[Broker], tmp_path: Path) -> None:
    """It denies the user of the reverse flow too, by which records return to the topic."""
    east, west = emptied
    topic = create_topic(east, f"denied-{uuid4().hex[:8]}", 2)
    lines = {"topics": topic, "principals": EVERYBODY}
    settings = {f"{FORWARD}.move.shop.{key}": value for key, value in lines.items()}
    settings |= {f"{FORWARD}.move.block.producers": "acl", f"{FORWARD}.move.quiet.ms": "0"}
    both = forward_and_reverse(east, west, tmp_path, topic=topic, settings=settings)
    replicated = write(east, topic, 0, 20)
    takes(both.forward, "mirror", "cut_over_producers")
    with pytest.raises(
        BlockRefused, match=r"copies back, is denied WRITE by it; .* unblock them: `airmirror migration undo"
    ):
        takes(both.forward, "reverse", reverse=both.reverse)
    assert both.now(both.reverse).flow.returns == {}, "nothing has begun"
    blocking.unblock_producers(both.forward, move_of(both.forward), ORDER)
    takes(both.forward, "reverse", reverse=both.reverse)
    blocking.block_producers(both.forward, move_of(both.forward), ORDER)
    since = write(west, both.remote, 100, 12)
    assert acls_of(east, topic) == ["DENY WRITE"]
    undo_move(both.forward, move_of(both.forward), ORDER, lambda phase: None, both.reverse)
    assert acls_of(east, topic) == [] and owners_now(both.forward).frozen == {}
    assert sorted(each for its in both.values(east).values() for each in its if each) == sorted([*replicated, *since])


@pytest.mark.parametrize("comes_down", [False, True])
def test_a_block_that_goes_up_while_a_window_looks_is_not_copied(
    guarded: list[Broker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comes_down: bool
) -> None:
    """By another deployment, between what the window knows of blocks and its look at ACLs; it may come down right after that."""
    east, west = guarded
    settings = {"move_block_producers": "acl", "move_shop_principals": "User:shop", "sync_topic_acls_enabled": "true"}
    flow, _ = moving(east, west, tmp_path, **settings)
    produce(east, flow.topic, numbered(10), partition=0)
    takes(flow.opened, "mirror")
    other, look, put = elsewhere(flow.opened, tmp_path), preparing.look, list[str]()

    def put_up_and_look(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(preparing, "look", look)
        put.extend(blocking.block_producers(flow.opened, move_of(flow.opened), ORDER))
        found = look(*given, **named)
        if comes_down:
            blocking.unblock_producers(flow.opened, move_of(flow.opened), ORDER)
        return found

    monkeypatch.setattr(preparing, "look", put_up_and_look)
    preparing.prepare(other)
    assert put and acls_of(east, flow.topic) == ([] if comes_down else ["DENY WRITE"])
    assert acls_of(west, flow.remote_topic) == []
    undone(flow)


def test_a_denial_of_others_is_left_as_it_is(guarded: list[Broker], tmp_path: Path) -> None:
    east, west = guarded
    flow, _ = moving(east, west, tmp_path, move_block_producers="acl", move_shop_principals="User:ann")
    produce(east, flow.topic, numbered(10), partition=0)
    denied = (ResourceType.TOPIC, flow.topic, ResourcePatternType.LITERAL, "User:ann", "*", AclOperation.WRITE)
    for future in admin(east).create_acls([AclBinding(*denied, AclPermissionType.DENY)]).values():
        future.result(30)
    takes(flow.opened, "cut_over_producers")
    undone(flow)
    assert acls_of(east, flow.topic) == ["DENY WRITE"]


def test_a_block_that_would_keep_out_what_returns_comes_down_again(guarded: list[Broker], tmp_path: Path) -> None:
    """Principals are discovered among those who may write: where Airmirror's own user is one, its reverse flow would stand
    still."""
    east, west = guarded
    for name, operation in (("User:reader", AclOperation.READ), ("User:shop", AclOperation.WRITE)):
        anything = (ResourceType.TOPIC, "*", ResourcePatternType.LITERAL, name, "*", operation)
        for future in admin(east).create_acls([AclBinding(*anything, AclPermissionType.ALLOW)]).values():
            future.result(30)
    flow, _ = moving(east, west, tmp_path, move_block_producers="acl", move_reverse="true")
    produce(east, flow.topic, numbered(10), partition=0)
    takes(flow.opened, "mirror", order=replace(ORDER, reverse=False))  # none is enabled here
    with pytest.raises(BlockRefused, match=r"this user, who copies back, is denied WRITE by it; set .*\.principals"):
        blocking.block_producers(flow.opened, move_of(flow.opened), ORDER)
    assert acls_of(east, flow.topic) == [] and flow.opened.ledger.of_kind(ProducerBlock) == []
    produce(east, flow.topic, numbered(1, 10), partition=0)
    alone, _ = moving(east, west, tmp_path, move_block_producers="acl")
    produce(east, alone.topic, numbered(1), partition=0)
    takes(alone.opened, "mirror")
    with pytest.raises(BlockRefused, match="this user, who copies back"):
        blocking.block_producers(alone.opened, move_of(alone.opened), replace(ORDER, reverse=True))
    assert acls_of(east, alone.topic) == []
    said = blocking.block_producers(alone.opened, move_of(alone.opened), ORDER)
    assert {each.split(": ")[1].split(" is ")[0] for each in said} == {EVERYBODY, "User:shop"}, "not who only reads"
    blocking.unblock_producers(alone.opened, move_of(alone.opened), ORDER)


def test_nobody_to_deny_is_said(guarded: list[Broker], tmp_path: Path) -> None:
    flow, _ = moving(*guarded, tmp_path, move_block_producers="acl", move_shop_principals="")
    produce(guarded[0], flow.topic, numbered(10), partition=0)
    with pytest.raises(BlockRefused, match=r"set .*\.move\.shop\.principals"):
        takes(flow.opened, "cut_over_producers")

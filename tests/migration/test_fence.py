"""Fences around a move group's topics: who is refused, that nothing of it reaches the target, that it comes down as it was."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from airmirror.clusters.admin.acls import NoAuthorizer
from airmirror.clusters.admin.client import connect, topic_configs
from airmirror.flows import prepare as preparing
from airmirror.flows.closing import owners_now
from airmirror.migration import fence
from airmirror.migration.fence import FenceHangs, FenceRefused
from airmirror.migration.undo import undo_move
from airmirror.wire.switches import Fence
from airmirror_local.brokers import Broker
from support.acls import EVERYBODY
from support.failovers import elsewhere
from support.flows import Mirror
from support.following import numbered
from support.killing import killed_at
from support.migrations import ORDER, move_of, moving, takes
from support.topics import admin, await_settled, open_transaction, produce, set_config
from support.waiting import BUSY


def acls_of(cluster: Broker, topic: str) -> list[str]:
    """The ACLs of a topic, as operation and permission."""
    every = AclBindingFilter(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    found = admin(cluster).describe_acls(every).result(30)
    return sorted(f"{each.permission_type.name} {each.operation.name}" for each in found)


def largest(flow: Mirror, topic: str | None = None) -> tuple[str | None, bool]:
    """``max.message.bytes`` of the topic on the source, and whether it is its own."""
    found = topic_configs(connect(flow.flow.source), [topic or flow.topic])[topic or flow.topic]["max.message.bytes"]
    return found.value, found.is_own


def undone(flow: Mirror) -> None:
    undo_move(flow.opened, move_of(flow.opened), ORDER, lambda phase: None)


@pytest.mark.parametrize("own", [None, "2000000"])
def test_a_topic_is_fenced_and_the_fence_comes_down_as_it_was(
    east: Broker, west: Broker, tmp_path: Path, own: str | None
) -> None:
    flow, _ = moving(east, west, tmp_path, move_fence="topic")
    if own:
        set_config(east, flow.topic, "max.message.bytes", own)
    produce(east, flow.topic, numbered(10), partition=0)
    takes(flow.opened, "mirror")
    before = largest(flow)
    said = takes(flow.opened, "switch_producers")
    assert said[0] == f"fence: {flow.topic}: max.message.bytes = 0 ({own or 'not set on the topic'} before)"
    assert largest(flow)[0] == "0"
    for settings in ({"acks": "1"}, {"enable.idempotence": "true"}):
        with pytest.raises(AssertionError, match="MSG_SIZE_TOO_LARGE"):
            produce(east, flow.topic, numbered(1, 10), partition=0, settings=settings)
    remote = topic_configs(connect(flow.flow.target), [flow.remote_topic])[flow.remote_topic]["max.message.bytes"]
    assert remote.value != "0", "the target takes records"
    begun = time.monotonic()
    undone(flow)
    assert time.monotonic() - begun < BUSY * 10 and largest(flow) == before
    assert flow.opened.ledger.of_kind(Fence) == [] and owners_now(flow.opened).closed == {}
    produce(east, flow.topic, numbered(10, 10), partition=0)
    assert flow.run().is_verified and flow.assert_equal() == 20


def test_windows_go_on_within_a_fence_and_never_copy_it(east: Broker, west: Broker, tmp_path: Path) -> None:
    """A fence that is up while the last records are copied: the remote topic is made, and kept, with room for them."""
    flow, _ = moving(east, west, tmp_path, move_fence="topic")
    produce(east, flow.topic, numbered(10), partition=0)
    fence.put_up(flow.opened, move_of(flow.opened), ORDER)
    for _ in range(2):
        assert flow.run().is_verified
    assert flow.assert_equal() == 10
    remote = topic_configs(connect(flow.flow.target), [flow.remote_topic])[flow.remote_topic]["max.message.bytes"]
    assert remote.value != "0"
    produce(west, flow.remote_topic, numbered(1, 10), partition=0)  # as applications do that have switched


def test_a_fence_of_others_is_left_as_it_is(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = moving(east, west, tmp_path, move_fence="topic")
    produce(east, flow.topic, numbered(10), partition=0)
    set_config(east, flow.topic, "max.message.bytes", "0")
    takes(flow.opened, "switch_producers")
    undone(flow)
    assert largest(flow) == ("0", True)


def test_transactions_are_never_fenced_by_size(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Their markers would be refused too. Nothing is written while one is open, or was there lately."""
    flow, _ = moving(east, west, tmp_path, move_fence="topic")
    with (
        open_transaction(east, flow.topic, numbered(5), partition=0),
        pytest.raises(FenceHangs, match=f"{flow.topic}-0: test-"),
    ):
        takes(flow.opened, "switch_producers")
    assert largest(flow)[0] != "0" and flow.opened.ledger.of_kind(Fence) == []
    await_settled(east, flow.topic)
    with pytest.raises(FenceHangs):
        takes(flow.opened, "switch_producers")


def test_what_others_have_set_since_stays_when_the_fence_comes_down(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = moving(east, west, tmp_path, move_fence="topic")
    produce(east, flow.topic, numbered(10), partition=0)
    takes(flow.opened, "mirror")
    fence.put_up(flow.opened, move_of(flow.opened), ORDER)
    set_config(east, flow.topic, "max.message.bytes", "500000")
    fence.take_down(flow.opened, move_of(flow.opened), ORDER)
    assert largest(flow) == ("500000", True) and flow.opened.ledger.of_kind(Fence) == []


def test_a_transaction_that_begins_while_it_goes_up_takes_it_down_again(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its marker would be refused, and the transaction would hang."""
    flow, _ = moving(east, west, tmp_path, move_fence="topic")
    produce(east, flow.topic, numbered(10), partition=0)
    takes(flow.opened, "mirror")
    put = fence._put
    with ExitStack() as begun:

        def begin_and_put(*given: Any) -> list[str]:
            begun.enter_context(open_transaction(east, flow.topic, numbered(5), partition=0))
            return put(*given)

        monkeypatch.setattr(fence, "_put", begin_and_put)
        try:
            with pytest.raises(FenceHangs, match=f"{flow.topic}-0: test-"):
                fence.put_up(flow.opened, move_of(flow.opened), ORDER)
            assert largest(flow)[0] != "0" and flow.opened.ledger.of_kind(Fence) == []
        finally:
            set_config(east, flow.topic, "max.message.bytes", None)  # so that it can end, whatever was found


def test_killed_while_it_goes_up(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = moving(east, west, tmp_path, move_fence="topic")
    produce(east, flow.topic, numbered(10), partition=0)
    takes(flow.opened, "mirror")
    before = largest(flow)
    with killed_at(fence, "_put", after=True):
        takes(elsewhere(flow.opened, tmp_path), "switch_producers")
    takes(elsewhere(flow.opened, tmp_path), "switch_producers")
    undone(replace(flow, opened=elsewhere(flow.opened, tmp_path)))
    assert largest(flow) == before, "what was there at the very first"


def test_a_cluster_without_acls_can_not_fence_by_them(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = moving(east, west, tmp_path, move_fence="acl", move_shop_principals=EVERYBODY)
    with pytest.raises(NoAuthorizer):
        takes(flow.opened, "switch_producers")
    assert flow.opened.ledger.of_kind(Fence) == []


def test_principals_are_denied_on_the_source_alone(guarded: list[Broker], tmp_path: Path) -> None:
    """Whoever has begun a transaction can end it: it was written, so it crosses. No window copies the denial."""
    east, west = guarded
    settings = {"move_fence": "acl", "move_shop_principals": EVERYBODY, "move_quiet_ms": "500"}
    flow, _ = moving(east, west, tmp_path, **settings)
    produce(east, flow.topic, numbered(10), partition=0)
    takes(flow.opened, "mirror")
    with open_transaction(east, flow.topic, numbered(5, 10), partition=0) as producer:
        fence.put_up(flow.opened, move_of(flow.opened), ORDER)
        producer.commit_transaction(30)
        assert flow.run().is_verified
        said = takes(flow.opened, "switch_producers", order=replace(ORDER, wait=30.0))
    assert said[0] == f"fence: {flow.topic}: {EVERYBODY} is denied WRITE"
    assert acls_of(east, flow.topic) == ["DENY WRITE"] and acls_of(west, flow.remote_topic) == []
    with pytest.raises(AssertionError, match="TOPIC_AUTHORIZATION_FAILED"):
        produce(east, flow.topic, numbered(1, 15), partition=0)
    assert flow.assert_equal() == 15
    undone(flow)
    assert acls_of(east, flow.topic) == []
    produce(east, flow.topic, numbered(5, 15), partition=0)
    assert flow.run().is_verified and flow.assert_equal() == 20


def test_a_fence_that_goes_up_while_a_window_looks_is_not_copied(
    guarded: list[Broker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another deployment, between what the window knows of fences and its look at ACLs."""
    east, west = guarded
    settings = {"move_fence": "acl", "move_shop_principals": "User:shop", "sync_topic_acls_enabled": "true"}
    flow, _ = moving(east, west, tmp_path, **settings)
    produce(east, flow.topic, numbered(10), partition=0)
    takes(flow.opened, "mirror")
    other, look, put = elsewhere(flow.opened, tmp_path), preparing.look, list[str]()

    def put_up_and_look(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(preparing, "look", look)
        put.extend(fence.put_up(flow.opened, move_of(flow.opened), ORDER))
        return look(*given, **named)

    monkeypatch.setattr(preparing, "look", put_up_and_look)
    preparing.prepare(other)
    assert put and acls_of(east, flow.topic) == ["DENY WRITE"] and acls_of(west, flow.remote_topic) == []
    undone(flow)


def test_a_denial_of_others_is_left_as_it_is(guarded: list[Broker], tmp_path: Path) -> None:
    east, west = guarded
    flow, _ = moving(east, west, tmp_path, move_fence="acl", move_shop_principals="User:ann")
    produce(east, flow.topic, numbered(10), partition=0)
    denied = (ResourceType.TOPIC, flow.topic, ResourcePatternType.LITERAL, "User:ann", "*", AclOperation.WRITE)
    for future in admin(east).create_acls([AclBinding(*denied, AclPermissionType.DENY)]).values():
        future.result(30)
    takes(flow.opened, "switch_producers")
    undone(flow)
    assert acls_of(east, flow.topic) == ["DENY WRITE"]


def test_a_fence_that_would_keep_out_what_returns_comes_down_again(guarded: list[Broker], tmp_path: Path) -> None:
    """Principals are discovered among those who may write: where Airmirror's own user is one, its flow back would stand still."""
    east, west = guarded
    for name, operation in (("User:reader", AclOperation.READ), ("User:shop", AclOperation.WRITE)):
        anything = (ResourceType.TOPIC, "*", ResourcePatternType.LITERAL, name, "*", operation)
        for future in admin(east).create_acls([AclBinding(*anything, AclPermissionType.ALLOW)]).values():
            future.result(30)
    flow, _ = moving(east, west, tmp_path, move_fence="acl", move_reverse="true")
    produce(east, flow.topic, numbered(10), partition=0)
    takes(flow.opened, "mirror")
    with pytest.raises(FenceRefused, match=r"this user, who copies back, is denied WRITE by it; set .*\.principals"):
        fence.put_up(flow.opened, move_of(flow.opened), ORDER)
    assert acls_of(east, flow.topic) == [] and flow.opened.ledger.of_kind(Fence) == []
    produce(east, flow.topic, numbered(1, 10), partition=0)
    alone, _ = moving(east, west, tmp_path, move_fence="acl")
    produce(east, alone.topic, numbered(1), partition=0)
    takes(alone.opened, "mirror")
    said = fence.put_up(alone.opened, move_of(alone.opened), ORDER)
    assert {each.split(": ")[1].split(" is ")[0] for each in said} == {EVERYBODY, "User:shop"}, "not who only reads"
    fence.take_down(alone.opened, move_of(alone.opened), ORDER)


def test_nobody_to_deny_is_said(guarded: list[Broker], tmp_path: Path) -> None:
    flow, _ = moving(*guarded, tmp_path, move_fence="acl", move_shop_principals="")
    produce(guarded[0], flow.topic, numbered(10), partition=0)
    with pytest.raises(FenceRefused, match=r"set .*\.move\.shop\.principals"):
        takes(flow.opened, "switch_producers")

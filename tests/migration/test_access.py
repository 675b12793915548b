"""The rights and quotas of a move group's clients, shown as differences first, and copied where the configuration says so."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from airmirror.clusters.protocol import granted
from airmirror.clusters.protocol.described import AclBinding, Quota, acl_bindings, client_quotas
from airmirror.clusters.protocol.granted import create_acl_bindings, set_quotas
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Cluster
from airmirror.runbooks.migration import access
from airmirror.runbooks.migration.access import meant
from airmirror.runbooks.migration.chosen import Move
from airmirror.runbooks.migration.state import move_state
from airmirror_local.brokers import Broker
from support.following import numbered, patiently
from support.groups import commit
from support.migrations import ORDER, move_of, moving, takes
from support.topics import produce


def grants(cluster: Cluster, principal: str) -> set[tuple[str, str, str, str]]:
    with Routes(cluster, "test") as routes:
        found = acl_bindings(routes) or []
    return {(each.resource, each.pattern, each.name, each.operation) for each in found if each.principal == principal}


def await_there(cluster: Cluster, who: str, given: set[tuple[str, str, str, str]], quota: Quota) -> None:
    """A broker tells what was changed when its own copy of the metadata has it."""
    for attempt in patiently():
        with attempt, Routes(cluster, "test") as routes:
            assert grants(cluster, who) >= given and quota in client_quotas(routes)


WHO = "User:mallory"
ALL = AclBinding("TOPIC", "billing-eu", "LITERAL", WHO, "*", "ALL", "ALLOW")


def copied(*here: AclBinding, remote: str = "billing-eu", blocked: bool = False) -> tuple[list[str], list[str]]:
    """The ACLs that a move group's clients get on the target, and those that they don't."""
    move = Move("shop", {"billing-eu": remote}, ("shop",), None)
    acls, left = meant(here, (), move, {WHO}, {("billing-eu", WHO)} if blocked else ())
    return [str(each) for each in acls], [str(each) for each in left]


@pytest.mark.parametrize("remote", ["billing-eu", "east.billing-eu", "east.billing-eu.2"])
@pytest.mark.parametrize(("name", "pattern"), [("b", "PREFIXED"), ("*", "LITERAL")])
def test_nobody_gets_more_there_than_here(remote: str, name: str, pattern: str) -> None:
    """The target has topics, groups and ids of its own that begin the same."""
    for permission in ("ALLOW", "DENY"):
        broad = replace(ALL, name=name, pattern=pattern, permission=permission)
        assert copied(broad, remote=remote) == ([f"{permission} ALL on TOPIC {remote} to {WHO} from *"], [])
    group = AclBinding("GROUP", "*" if name == "*" else "s", pattern, WHO, "*", "ALL", "ALLOW")
    assert copied(group) == ([f"ALLOW ALL on GROUP shop to {WHO} from *"], [])
    ids = AclBinding("TRANSACTIONAL_ID", "*" if name == "*" else "air", pattern, WHO, "*", "WRITE", "ALLOW")
    assert copied(ALL, ids) == ([str(ALL)], [str(ids)]), "Airmirror's own, and everybody's"
    assert copied(ALL, replace(ids, name="airmirror.east.west.0", pattern="LITERAL"))[0] == [str(ALL)]


def test_who_only_reads_gets_no_ids_there() -> None:
    """They could fence producers of others there. Who writes may choose new ids, as Kafka Streams does: a prefix stays one."""
    ids = AclBinding("TRANSACTIONAL_ID", "shop-", "PREFIXED", WHO, "*", "WRITE", "ALLOW")
    read, denied = replace(ALL, operation="READ"), replace(ids, permission="DENY")
    assert copied(read, ids) == ([str(read)], [])
    assert copied(read, ids, denied) == ([str(denied), str(read)], [])
    for may in (ALL, replace(ALL, operation="WRITE"), replace(ALL, operation="WRITE", principal="User:*")):
        assert str(ids) in copied(may, ids)[0]


def test_what_is_denied_here_is_denied_there_but_for_the_block() -> None:
    delete, read = (replace(ALL, operation=what, permission="DENY") for what in ("DELETE", "READ"))
    block = replace(ALL, operation="WRITE", permission="DENY")
    acls, _ = copied(ALL, block, delete, replace(read, name="*"), remote="x", blocked=True)
    assert [each.split(" on ")[0] for each in acls] == ["DENY DELETE", "DENY READ", "ALLOW ALL"]
    assert len(copied(ALL, block)[0]) == 2, "one that is no block"


def test_what_only_a_newer_kafka_knows_is_named_and_left() -> None:
    """TWO_PHASE_COMMIT (KIP-939): a broker that does not know it closes the connection that asks for it."""
    newer = AclBinding("TRANSACTIONAL_ID", "shop-1", "LITERAL", WHO, "*", "15", "ALLOW")
    assert copied(newer, ALL) == ([str(ALL)], [str(newer)])


def test_quotas_of_a_default_client_id_are_set_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def answer(_: object, request: Any, versions: object) -> Any:
        asked.extend(([part.entity_name for part in each.entity], len(each.ops)) for each in request.entries)
        return SimpleNamespace(entries=[SimpleNamespace(error_code=0) for _ in request.entries])

    monkeypatch.setattr(granted, "ask", answer)
    of = [(("client-id", client), ("user", "ann")) for client in (None, "app", None)]
    quotas = [Quota(entity, key, 1e6) for entity, key in zip(of, ("a", "a", "b"), strict=True)]
    assert set_quotas(cast(Routes, None), quotas) == {}
    assert sorted(asked, key=str) == [(["app", "ann"], 1), ([None, "ann"], 2)]


def test_what_allows_waits_for_what_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[AclBinding] = []

    def create(_: object, acls: Sequence[AclBinding]) -> dict[AclBinding, str]:
        asked.extend(acls)
        return {each: "too many" for each in acls if each.permission == "DENY"}

    monkeypatch.setattr(access, "create_acl_bindings", create)
    deny, other = replace(ALL, operation="READ", permission="DENY"), replace(ALL, name="other")
    refused = access._create(cast(Routes, None), [ALL, other, deny])
    assert asked == [deny, other] and refused == {deny: "too many", ALL: "what denies there was refused"}


@pytest.mark.parametrize("mode", [pytest.param("readers", marks=pytest.mark.long), "migrate"])
def test_what_clients_may_is_shown_and_copied_where_it_is_wanted(
    guarded: list[Broker], tmp_path: Path, mode: str
) -> None:
    east, west = guarded
    group, user = f"g-{uuid.uuid4().hex[:8]}", f"u-{uuid.uuid4().hex[:8]}"
    flow, stays = moving(east, west, tmp_path, groups=group, sync_topic_acls_mode=mode)
    who, quota = f"User:{user}", Quota((("user", user),), "producer_byte_rate", 4e6)
    produce(east, flow.topic, numbered(10), partition=0)
    commit(east, group, {(flow.topic, 0): 5})
    own = [
        AclBinding("TOPIC", flow.topic, "LITERAL", who, "*", "WRITE", "ALLOW"),
        AclBinding("TOPIC", flow.topic[:-2], "PREFIXED", who, "*", "READ", "ALLOW"),
        AclBinding("TOPIC", stays, "LITERAL", who, "*", "READ", "ALLOW"),
        AclBinding("GROUP", group, "LITERAL", who, "*", "READ", "ALLOW"),
        AclBinding("GROUP", f"not-{group}", "LITERAL", who, "*", "READ", "ALLOW"),
        AclBinding("TRANSACTIONAL_ID", "shop-", "PREFIXED", who, "*", "WRITE", "ALLOW"),
        AclBinding("TRANSACTIONAL_ID", "*", "LITERAL", who, "*", "DESCRIBE", "ALLOW"),
    ]
    with Routes(flow.flow.source, "test") as routes:
        assert create_acl_bindings(routes, own) == {} and set_quotas(routes, [quota]) == {}
    await_there(flow.flow.source, who, {("GROUP", "LITERAL", group, "READ")}, quota)
    shown = move_state(flow.opened, move_of(flow.opened), ORDER).access
    lacks = {
        ("TOPIC", "LITERAL", flow.remote_topic, "WRITE"),
        ("TOPIC", "LITERAL", flow.remote_topic, "READ"),
        ("GROUP", "LITERAL", group, "READ"),
        ("TRANSACTIONAL_ID", "PREFIXED", "shop-", "WRITE"),
    }
    assert (
        sum(who in each for each in shown if each.startswith("lacks there")) == len(lacks)
        and f"lacks there: {quota}" in shown
    ), shown
    assert grants(flow.flow.target, who) == set(), "shown first"
    said = takes(flow.opened, "mirror")
    with Routes(flow.flow.target, "test") as routes:
        there = client_quotas(routes)
    if mode == "readers":
        assert "sync.topic.acls.mode = migrate is not set" in said[-1]
        assert not grants(flow.flow.target, who) & lacks and quota not in there
    else:
        await_there(flow.flow.target, who, lacks, quota)
        by_windows = ("TOPIC", "LITERAL", f"{flow.flow.source.alias}.{stays}", "READ")
        assert grants(flow.flow.target, who) - {by_windows} == lacks, "no more than that"
        assert takes(flow.opened, "mirror")[-1] == "0 ACLs and 0 quotas copied"

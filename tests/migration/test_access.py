"""The rights and quotas of a move group's clients, shown as differences first, and copied where the configuration says so."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from airmirror.clusters.protocol.described import AclBinding, Quota, acl_bindings, client_quotas
from airmirror.clusters.protocol.granted import create_acl_bindings, set_quotas
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Cluster
from airmirror.migration.state import move_state
from airmirror_local.brokers import Broker
from support.following import numbered, patiently
from support.groups import commit
from support.migrations import ORDER, move_of, moving, takes
from support.topics import produce


def grants(cluster: Cluster, principal: str) -> set[tuple[str, str, str, str]]:
    with Routes(cluster, "test") as routes:
        found = acl_bindings(routes) or []
    return {(each.resource, each.pattern, each.name, each.operation) for each in found if each.principal == principal}


def await_there(cluster: Cluster, who: str, granted: set[tuple[str, str, str, str]], quota: Quota) -> None:
    """A broker tells what was changed when its own copy of the metadata has it."""
    for attempt in patiently():
        with attempt, Routes(cluster, "test") as routes:
            assert grants(cluster, who) >= granted and quota in client_quotas(routes)


@pytest.mark.parametrize("mode", ["readers", "migrate"])
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
    ]
    with Routes(flow.flow.source, "test") as routes:
        assert create_acl_bindings(routes, own) == {} and set_quotas(routes, [quota]) == {}
    await_there(flow.flow.source, who, {("GROUP", "LITERAL", group, "READ")}, quota)
    access = move_state(flow.opened, move_of(flow.opened), ORDER).access
    lacks = {
        ("TOPIC", "LITERAL", flow.remote_topic, "WRITE"),
        ("TOPIC", "PREFIXED", f"{flow.flow.source.alias}.{flow.topic[:-2]}", "READ"),
        ("GROUP", "LITERAL", group, "READ"),
        ("TRANSACTIONAL_ID", "PREFIXED", "shop-", "WRITE"),
    }
    assert sum(who in each for each in access) == len(lacks) and f"lacks there: {quota}" in access, access
    assert grants(flow.flow.target, who) == set(), "shown first"
    said = takes(flow.opened, "mirror")
    with Routes(flow.flow.target, "test") as routes:
        there = client_quotas(routes)
    if mode == "readers":
        assert "sync.topic.acls.mode = migrate is not set" in said[-1]
        assert not grants(flow.flow.target, who) & lacks and quota not in there
    else:
        await_there(flow.flow.target, who, lacks, quota)
        assert ("GROUP", "LITERAL", f"not-{group}", "READ") not in grants(flow.flow.target, who)
        assert takes(flow.opened, "mirror")[-1] == "0 ACLs and 0 quotas copied"

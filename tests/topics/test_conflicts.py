"""Flows of one configuration that are in each other's way: loops, and two writers of one remote topic."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from airmirror.config import Configuration, parse
from airmirror.topics.conflicts import loop, other_writers, refusals
from airmirror.topics.names import select
from airmirror.topics.sync import look
from airmirror_local.brokers import Broker
from support.topics import create_topic

CLUSTERS = "clusters = a, b, c\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\nc.bootstrap.servers=c:1\n"
IDENTITY = "replication.policy.class = IdentityReplicationPolicy\n"


def configuration(*flows: str, lines: str = "") -> Configuration:
    return parse(CLUSTERS + "".join(f"{flow}.enabled = true\n" for flow in flows) + lines, "f")


def refused(config: Configuration, name: str, there: dict[str, list[str]], *topics: str) -> dict[str, str]:
    flow = config.flow(name)
    return refusals(flow, select(flow, topics), config.enabled, there)


def test_identity_in_both_directions_is_refused_for_the_topics_of_both() -> None:
    config = configuration("a->b", "b->a", lines=f"{IDENTITY}b->a.topics = orders.*\n")
    for name in ("a->b", "b->a"):
        reasons = refused(config, name, {}, "orders")
        assert "come back" in reasons["orders"] and "a->b" in reasons["orders"] and "b->a" in reasons["orders"]
    assert refused(config, "a->b", {}, "payments") == {}  # the other direction does not take it


def test_a_loop_over_three_clusters() -> None:
    config = configuration("a->b", "b->c", "c->a", lines=IDENTITY)
    flow = config.flow("b->c")
    assert loop(flow, "orders", "orders", config.enabled) == ("b->c", "c->a", "a->b")
    assert loop(configuration("a->b", "b->c", "c->b", lines=IDENTITY).flow("a->b"), "t", "t", ()) == ()


def test_renaming_breaks_loops() -> None:
    config = configuration("a->b", "b->a", "b->c", "c->a")
    for flow in config.enabled:
        topics = select(flow, ["orders", "heartbeats", "c.orders"])
        assert refusals(flow, topics, config.enabled, {}) == {}


def test_names_that_would_grow_for_ever_because_separators_differ() -> None:
    config = configuration("a->b", "b->a", lines="b->a.replication.policy.separator = _\n")
    assert "come back" in refused(config, "a->b", {}, "orders")["orders"]


@pytest.mark.parametrize(
    ("lines", "topic", "theirs"),
    [
        (IDENTITY, "orders", "orders"),
        ("a->c.replication.policy.class = IdentityReplicationPolicy\n", "b.orders", "orders"),
        ("a->c.replication.policy.separator = .b.\nb->c.replication.policy.separator = .\n", "t", None),
    ],
)
def test_who_else_writes_a_remote_topic(lines: str, topic: str, theirs: str | None) -> None:
    config = configuration("a->c", "b->c", lines=lines)
    flow = config.flow("a->c")
    (remote,) = (chosen := select(flow, [topic])).values()
    found = other_writers(flow, chosen, config.enabled)
    assert found == ({remote: ((config.flow("b->c"), theirs),)} if theirs else {})


def test_an_alias_that_begins_another() -> None:
    lines = "clusters = a, a.b, c\na.bootstrap.servers=a:1\na.b.bootstrap.servers=b:1\nc.bootstrap.servers=c:1\n"
    config = parse(lines + "a->c.enabled = true\na.b->c.enabled = true\n", "f")
    flow = config.flow("a->c")
    found = other_writers(flow, select(flow, ["b.orders"]), config.enabled)
    assert found == {"a.b.orders": ((config.flow("a.b->c"), "orders"),)}


def test_a_policy_of_ones_own_that_brings_topics_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "together.py").write_text(
        "from airmirror.naming import DefaultReplicationPolicy\n"
        "class All(DefaultReplicationPolicy):\n"
        "    def format_remote_topic(self, source_alias, topic):\n"
        "        return 'all' + self.separator + topic\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    config = configuration("a->c", "b->c", lines="replication.policy.class = together:All\n")
    assert (
        "'b->c' writes the same remote topic from 'orders'"
        in refused(config, "a->c", {"b": ["orders"]}, "orders")["orders"]
    )


def test_only_topics_that_the_other_source_has_and_that_are_not_declared() -> None:
    config = configuration("a->c", "b->c", lines=IDENTITY)
    assert refused(config, "a->c", {"b": ["payments"]}, "orders") == {}
    reason = refused(config, "a->c", {"b": ["orders"]}, "orders")["orders"]
    assert "a->c.aggregate = true, b->c.aggregate = true" in reason
    declared = configuration("a->c", "b->c", lines=f"{IDENTITY}a->c.aggregate = true\n")
    assert refused(declared, "a->c", {"b": ["orders"]}, "orders") == {}
    assert "orders" in refused(declared, "b->c", {"a": ["orders"]}, "orders")  # who did not declare it is refused


def test_two_others_at_once() -> None:
    lines = CLUSTERS.replace("a, b, c", "a, b, c, d") + "d.bootstrap.servers=d:1\n" + IDENTITY
    config = parse(lines + "".join(f"{source}->c.enabled = true\n" for source in "abd"), "f")
    assert "'b->c'" in refused(config, "a->c", {"b": ["orders"], "d": []}, "orders")["orders"]
    assert "'d->c'" in refused(config, "a->c", {"b": [], "d": ["orders"]}, "orders")["orders"]


def test_on_real_clusters_and_with_a_source_that_is_down(east: Broker, west: Broker) -> None:
    topic = create_topic(east, f"conflict-{uuid4().hex[:8]}")

    def planned(other_source: str):  # type: ignore[no-untyped-def]
        config = parse(
            f"clusters = a, b, c\na.bootstrap.servers = {east.bootstrap}\nb.bootstrap.servers = {other_source}\n"
            f"c.bootstrap.servers = {west.bootstrap}\na->c.enabled = true\nb->c.enabled = true\ntopics = {topic}\n"
            f"heartbeats.replication.enabled = false\nreplication.factor = 1\n{IDENTITY}",
            "f",
        )
        return look(config.flow("a->c"), timeout=5, others=config.enabled)

    both = planned(east.bootstrap)
    assert both.create == () and both.topics == {}
    said = str(both.refused[0])
    assert "of cluster 'a'" in said and "on cluster 'c'" in said and "'b->c' writes the same remote topic" in said
    down = planned("127.0.0.1:1")
    assert [new.name for new in down.create] == [topic]
    (warning,) = down.warnings
    assert "'b->c'" in warning and "is not known" in warning and "cluster 'b' can't be reached" in warning

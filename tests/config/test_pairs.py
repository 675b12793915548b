"""The flows that emit heartbeats: MirrorMaker 2's rule for the pairs that have a flow."""

from __future__ import annotations

import pytest

from airmirror.config import parse
from airmirror.config.errors import UnknownFlow
from airmirror.config.pairs import heartbeat_flow, heartbeat_flows, interval_seconds

TEXT = """
clusters = a, b, c
a.bootstrap.servers = one:9092
b.bootstrap.servers = two:9092
c.bootstrap.servers = three:9092
a->b.enabled = true
"""


def names(more: str = "") -> list[str]:
    return [flow.name for flow in heartbeat_flows(parse(TEXT + more, "test"))]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", ["a->b", "b->a"]),
        ("b->c.enabled = false", ["a->b", "b->c", "b->a", "c->b"]),  # not enabled: heartbeats all the same
        ("emit.heartbeats.enabled = false", []),
        ("a->b.emit.heartbeats.enabled = false", ["b->a"]),
        ("emit.heartbeats.enabled = false\nb->a.emit.heartbeats.enabled = true", ["b->a"]),
        ("emit.heartbeats.interval.seconds = -1", []),
    ],
)
def test_flows_and_the_reverse_flow_of_each(more: str, expected: list[str]) -> None:
    assert names(more) == expected


def test_the_reverse_flow_has_its_own_clusters_and_settings() -> None:
    configuration = parse(TEXT + "emit.heartbeats.interval.seconds = 5\na.producer.acks = 1", "test")
    flow = heartbeat_flow(configuration, "b->a")
    assert (flow.source.alias, flow.target.alias, flow.target.bootstrap_servers) == ("b", "a", ("one:9092",))
    assert not flow.enabled and interval_seconds(flow) == 5
    assert flow.target.client("producer")["acks"] == "1"
    with pytest.raises(UnknownFlow, match="a->c"):
        heartbeat_flow(configuration, "a->c")


def test_an_interval_is_a_second_at_least() -> None:
    flow = heartbeat_flow(parse(TEXT + "emit.heartbeats.interval.seconds = 0", "test"), "a->b")
    assert interval_seconds(flow) == 1

"""Every topology, window by window: which topics are where in the end, exactly, and every record in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from airmirror.config import load
from support.topics import assert_mirrored, create_topic, produce, topics_of
from support.topologies import (
    Clusters,
    Deployment,
    deploy,
    fresh_records,
    internal_topics,
    read_by_pattern,
    values_by_partition,
)

IDENTITY = "replication.policy.class = IdentityReplicationPolicy"
RECORDS = 20
PARTITIONS = 2
SETTLING = 4  # windows after the last records: a record takes one a hop


@dataclass(frozen=True)
class Topology:
    """Arrows, and what must come of them.

    ``flows``: name -> topics. ``local``: where applications produce ``orders``. ``expected``: for each cluster its remote
    topics, each with the cluster whose ``orders`` it holds.
    """

    name: str
    flows: Mapping[str, str]
    local: tuple[str, ...]
    expected: Mapping[str, Mapping[str, str]]
    lines: str = ""
    duplicates: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return self.name


ALL = ".*orders"
TOPOLOGIES = [
    Topology("unidirectional", {"A->B": "orders"}, ("A",), {"B": {"A.orders": "A"}}),
    Topology(
        "unidirectional, separator of its own",
        {"A->B": "orders"},
        ("A",),
        {"B": {"A__orders": "A"}},
        "replication.policy.separator = __",
    ),
    Topology("unidirectional, names kept", {"A->B": "orders"}, ("A",), {"B": {"orders": "A"}}, IDENTITY),
    Topology("fan-in", {"A->C": "orders", "B->C": "orders"}, ("A", "B"), {"C": {"A.orders": "A", "B.orders": "B"}}),
    Topology("fan-out", {"A->B": "orders", "A->C": "orders"}, ("A",), {"B": {"A.orders": "A"}, "C": {"A.orders": "A"}}),
    Topology("chain", {"A->B": ALL, "B->C": ALL}, ("A",), {"B": {"A.orders": "A"}, "C": {"B.A.orders": "A"}}),
    Topology(
        "chain, names kept", {"A->B": ALL, "B->C": ALL}, ("A",), {"B": {"orders": "A"}, "C": {"orders": "A"}}, IDENTITY
    ),
    Topology("active/active", {"A->B": ALL, "B->A": ALL}, ("A", "B"), {"A": {"B.orders": "B"}, "B": {"A.orders": "A"}}),
    Topology(
        "ring",
        {"A->B": ALL, "B->C": ALL, "C->A": ALL},
        ("A", "B", "C"),
        {
            "A": {"C.orders": "C", "C.B.orders": "B"},
            "B": {"A.orders": "A", "A.C.orders": "C"},
            "C": {"B.orders": "B", "B.A.orders": "A"},
        },
    ),
    Topology(
        "hub and spokes",
        {"B->A": ALL, "C->A": ALL, "A->B": ALL, "A->C": ALL},
        ("A", "B", "C"),
        {
            "A": {"B.orders": "B", "C.orders": "C"},
            "B": {"A.orders": "A", "A.C.orders": "C"},
            "C": {"A.orders": "A", "A.B.orders": "B"},
        },
    ),
    Topology(
        "overlapping subscriptions",
        {"A->B": ALL, "A->C": ALL, "C->B": ALL},
        ("A",),
        {"B": {"A.orders": "A", "C.A.orders": "A"}, "C": {"A.orders": "A"}},
        duplicates=("C.A.orders",),
    ),
]


# Parts of the others: the ring's records make two hops and come round, a consumer of both sides has active/active, a chain
# with names kept begins with one direction, what overlaps fans out and in, an aggregate has two sources.
IN_OTHERS = {
    "active/active",
    "unidirectional",
    "unidirectional, names kept",
    "unidirectional, separator of its own",
    "fan-in",
    "fan-out",
    "chain",
    "hub and spokes",
}


@pytest.mark.parametrize("windows", [2, pytest.param(10, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "topology",
    [pytest.param(each, marks=pytest.mark.long) if each.name in IN_OTHERS else each for each in TOPOLOGIES],
    ids=str,
)
def test_each_topology(topology: Topology, windows: int, clusters: Clusters, tmp_path: Path) -> None:
    deployment = deploy(tmp_path, clusters.by_alias, topology.flows, topology.lines)
    for alias in topology.local:
        create_topic(clusters[alias], "orders", PARTITIONS)
    warnings = run(deployment, clusters, topology.local, windows)
    for alias, broker in clusters.by_alias.items():
        remote = topology.expected.get(alias, {})
        local = {"orders"} if alias in topology.local else set()
        sources = [flow.source.alias for flow in load(deployment.path).enabled if flow.target.alias == alias]
        assert topics_of(broker) == local | set(remote) | internal_topics(*sources)
        for name, origin in remote.items():
            assert assert_mirrored(clusters[origin], "orders", broker, name) == RECORDS * windows
    for name in topology.duplicates:
        assert any(name in warning and "reads them twice" in warning for warning in warnings)
    assert bool(topology.duplicates) == any("reads them twice" in warning for warning in warnings)


def run(deployment: Deployment, clusters: Clusters, local: tuple[str, ...], windows: int) -> set[str]:
    """Windows of every flow, with new records before each, and then until nothing is left; the warnings."""
    warnings: set[str] = set()
    copied = -1
    for number in range(windows + SETTLING):
        if number < windows:
            for alias in local:
                produce(clusters[alias], "orders", fresh_records(f"{alias}/{number}", RECORDS))
        copied = 0
        for window in deployment.windows():
            assert window.result.is_verified and not window.prepared.refused
            warnings.update(window.prepared.report.warnings)
            copied += window.result.copied
        if number >= windows and not copied:
            break
    assert copied == 0, "records still go round"
    return warnings


def test_a_consumer_of_both_sides_sees_every_record_once(clusters: Clusters, tmp_path: Path) -> None:
    deployment = deploy(tmp_path, clusters.by_alias, {"A->B": ALL, "B->A": ALL})
    for alias in ("A", "B"):
        create_topic(clusters[alias], "orders", PARTITIONS)
    run(deployment, clusters, ("A", "B"), 2)
    expected = sorted(
        f"{alias}/{number}/{each}".encode() for alias in ("A", "B") for number in range(2) for each in range(RECORDS)
    )
    for alias in ("A", "B"):
        values = read_by_pattern(clusters[alias], r"^(.*\.)?orders$", len(expected))
        assert sorted(value or b"" for value in values) == expected


@pytest.mark.parametrize("windows", [2, pytest.param(10, marks=pytest.mark.long)])
def test_an_aggregate_keeps_the_order_of_each_source(windows: int, clusters: Clusters, tmp_path: Path) -> None:
    lines = f"{IDENTITY}\nA->C.aggregate = true\nB->C.aggregate = true"
    deployment = deploy(tmp_path, clusters.by_alias, {"A->C": "orders", "B->C": "orders"}, lines)
    for alias in ("A", "B"):
        create_topic(clusters[alias], "orders", PARTITIONS)
    run(deployment, clusters, ("A", "B"), windows)
    assert topics_of(clusters.c) == {"orders"} | internal_topics("A", "B")
    found = values_by_partition(clusters.c, "orders")
    for alias in ("A", "B"):
        for partition, values in values_by_partition(clusters[alias], "orders").items():
            assert [each for each in found[partition] if (each or b"").startswith(alias.encode())] == values
    assert sum(map(len, found.values())) == 2 * windows * RECORDS
    from airmirror.flows.verification import compare_all

    for flow in ("A->C", "B->C"):
        with deployment.opened(flow) as opened:
            rows = compare_all(opened, [])
        assert not any(row.error for row in rows) and sum(row.records for row in rows) == windows * RECORDS

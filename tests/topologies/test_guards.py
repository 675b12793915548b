"""A flow refuses, before it writes anything, what must not be replicated: loops, names that differ, two writers of a topic."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from airmirror.errors import AirmirrorError
from airmirror.topics.identity import AliasDiffers, AliasReused
from airmirror.windows.errors import EqualClusterIds, SameCluster
from airmirror.wire.mappings import FlowIdentity
from airmirror_local.proxy import start_proxy
from support.topics import Record, assert_mirrored, await_settled, create_topic, end_offsets, produce, topics_of
from support.topologies import Clusters, Deployment, deploy, fresh_records, internal_topics

IDENTITY = "replication.policy.class = IdentityReplicationPolicy"
ALL = ".*orders"


def filled(clusters: Clusters, *aliases: str) -> None:
    for alias in aliases:
        create_topic(clusters[alias], "orders")
        produce(clusters[alias], "orders", fresh_records(alias, 10))


def refused(deployment: Deployment, flow: str) -> str:
    """A window in which the topic is refused, and nothing is copied; the reason."""
    window = deployment.window(flow)
    assert window.result.copied == 0 and not window.prepared.topics
    (reason,) = window.prepared.refused
    return reason


def test_names_kept_in_a_loop(clusters: Clusters, tmp_path: Path) -> None:
    deployment = deploy(tmp_path, clusters.by_alias, {"A->B": ALL, "B->C": ALL, "C->A": ALL}, IDENTITY)
    filled(clusters, "A", "B", "C")
    for flow in ("A->B", "B->C", "C->A"):
        reason = refused(deployment, flow)
        assert all(name in reason for name in ("A->B", "B->C", "C->A")) and "exclude it from one of" in reason
    assert {alias: end_offsets(broker, "orders") for alias, broker in clusters.by_alias.items()} == {
        "A": {0: 10},
        "B": {0: 10},
        "C": {0: 10},
    }


def test_names_kept_in_a_loop_of_two_configurations(clusters: Clusters, tmp_path: Path) -> None:
    filled(clusters, "A")
    there = deploy(tmp_path, clusters.by_alias, {"A->B": "orders"}, IDENTITY, "there")
    back = deploy(tmp_path, {"x": clusters.b, "y": clusters.a}, {"x->y": "orders"}, IDENTITY, "back")
    assert there.window("A->B").result.copied == 10
    with pytest.raises(AliasDiffers):
        back.window("x->y")
    back = deploy(tmp_path, clusters.by_alias, {"B->A": "orders, more"}, IDENTITY, "back")
    assert "come back" in refused(back, "B->A")
    assert end_offsets(clusters.a, "orders") == {0: 10}


def test_a_loop_half_of_which_renames(clusters: Clusters, tmp_path: Path) -> None:
    """B's orders are orders on A, A.orders on B, and would be taken again under that name."""
    filled(clusters, "B")
    deployment = deploy(tmp_path, clusters.by_alias, {"A->B": ALL, "B->A": ALL}, f"B->A.{IDENTITY}")
    assert "come back" in refused(deployment, "B->A")


def test_an_alias_that_differs_between_two_configurations(clusters: Clusters, tmp_path: Path) -> None:
    filled(clusters, "A")
    there = deploy(tmp_path, clusters.by_alias, {"A->B": ALL}, name="there")
    back = deploy(tmp_path, {"b2": clusters.b, "a2": clusters.a}, {"b2->a2": ALL}, name="back")
    there.windows()
    before = topics_of(clusters.a)
    with pytest.raises(AliasDiffers) as caught:
        back.window("b2->a2")
    error = caught.value
    assert not error.transient and (error.target, error.other_alias, error.other_flow) == ("a2", "A", "A->B")
    assert "b2->a2.target.cluster.other.aliases = A" in str(error)
    assert topics_of(clusters.a) == before == {"orders"}


def test_the_second_of_two_that_begin_at_once_sees_the_first(clusters: Clusters, tmp_path: Path) -> None:
    """Neither has written anything when both look; each looks again after it has written."""
    from airmirror.flows.prepare import guard
    from airmirror.topics.identity import introduce
    from airmirror.topics.internal import ensure_internal_topics

    filled(clusters, "A", "B")
    there = deploy(tmp_path, clusters.by_alias, {"A->B": ALL}, name="there")
    back = deploy(tmp_path, {"b2": clusters.b, "a2": clusters.a}, {"b2->a2": ALL}, name="back")
    with there.opened("A->B") as one, back.opened("b2->a2") as other:
        around_one, around_other = guard(one), guard(other)
        for opened, around in ((one, around_one), (other, around_other)):
            ensure_internal_topics(opened.flow)
            assert introduce(opened.flow, around)
        for opened in (one, other):
            with pytest.raises(AliasDiffers):
                guard(opened)


def test_an_alias_that_differs_in_a_ring_of_three_configurations(clusters: Clusters, tmp_path: Path) -> None:
    """C->a2 knows of A from what B->C says of its upstream, though nothing on C or A names it otherwise."""
    filled(clusters, "A")
    a, b, c = clusters.a, clusters.b, clusters.c
    deploy(tmp_path, {"A": a, "B": b}, {"A->B": ALL}, name="one").windows()
    deploy(tmp_path, {"B": b, "C": c}, {"B->C": ALL}, name="two").windows()
    with pytest.raises(AliasDiffers, match="called 'A'"):
        deploy(tmp_path, {"C": c, "a2": a}, {"C->a2": ALL}, name="three").windows()
    # A chain with other names than its neighbour's harms nobody.
    deploy(tmp_path, {"b2": b, "c2": c}, {"b2->c2": ALL}, name="four").windows()
    assert assert_mirrored(a, "orders", c, "b2.A.orders") == 10


@pytest.mark.parametrize("windows", [2, pytest.param(10, marks=pytest.mark.long)])
def test_other_aliases_that_are_declared(windows: int, clusters: Clusters, tmp_path: Path) -> None:
    """The way out of AliasDiffers: records do not go round, and no name grows."""
    filled(clusters, "A", "B")
    names = "A->B.target.cluster.other.aliases = b2"
    there = deploy(tmp_path, clusters.by_alias, {"A->B": ALL}, names, "there")
    names = "b2->a2.target.cluster.other.aliases = A"
    back = deploy(tmp_path, {"b2": clusters.b, "a2": clusters.a}, {"b2->a2": ALL}, names, "back")
    for _ in range(windows):
        there.windows()
        back.windows()
    assert topics_of(clusters.a) == {"orders", "b2.orders"} | internal_topics("b2")
    assert topics_of(clusters.b) == {"orders", "A.orders"} | internal_topics("A")


def test_a_flow_that_is_switched_off_is_no_neighbour(clusters: Clusters, tmp_path: Path) -> None:
    """Failback with names kept: A->B is off, and B->A may bring the records back."""
    filled(clusters, "A")
    deployment = deploy(tmp_path, clusters.by_alias, {"A->B": "orders"}, IDENTITY)
    deployment.windows()
    create_topic(clusters.b, "more-orders")
    produce(clusters.b, "more-orders", fresh_records("B", 10))
    back = deploy(tmp_path, clusters.by_alias, {"B->A": ALL}, f"{IDENTITY}\nB->A.topics.exclude = orders", "back")
    assert back.window("B->A").result.copied == 10
    back = deploy(tmp_path, clusters.by_alias, {"B->A": ALL}, IDENTITY, "back")
    assert "come back" in " ".join(back.window("B->A").prepared.refused)
    back = deploy(tmp_path, clusters.by_alias, {"B->A": "more-.*"}, f"{IDENTITY}\nA->B.enabled = false", "back")
    assert not back.window("B->A").prepared.refused


def test_what_a_stranger_writes_stops_no_flow(
    clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ordinary producer's record names code, another a pattern that would take for ever: both are a warning."""
    (tmp_path / "planted.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    filled(clusters, "A")
    for name, policy, pattern in (("code", "planted:sink", ".*"), ("slow", "DefaultReplicationPolicy", "((.|.)+)+!")):
        said = FlowIdentity(
            source=name,
            target="B",
            source_cluster_id="x",
            target_cluster_id="y",
            time_ms=0,
            policy=policy,
            separator=".",
            topics=(pattern,),
        )
        topic = create_topic(clusters.a, f"airmirror-mappings.{name}.internal")
        produce(clusters.a, topic, [Record(said.encode_value(), said.encode_key())])
    window = deploy(tmp_path, clusters.by_alias, {"A->B": ALL}).window("A->B")
    assert window.result.copied == 10 and not window.prepared.refused
    code, slow = sorted(text for text in window.prepared.report.warnings if "another configuration" in text)
    assert "'code->B'" in code and "'planted:sink'" in code and "'slow->B'" in slow
    assert "planted" not in sys.modules


def test_an_alias_that_stands_for_another_cluster_now(clusters: Clusters, tmp_path: Path) -> None:
    filled(clusters, "A", "C")
    deploy(tmp_path, {"A": clusters.a, "B": clusters.b}, {"A->B": ALL}, name="one").windows()
    with pytest.raises(AliasReused, match="--identity"):
        deploy(tmp_path, {"A": clusters.c, "B": clusters.b}, {"A->B": ALL}, name="two").windows()
    with pytest.raises(AliasReused):
        deploy(tmp_path, {"A": clusters.a, "b2": clusters.b}, {"A->b2": ALL}, name="three").windows()
    assert await_settled(clusters.b, "A.orders") == {0: 11}  # ten records, and a transaction's marker


@pytest.mark.parametrize("configurations", [1, 2])
def test_two_sources_of_one_topic_that_are_not_declared(
    configurations: int, clusters: Clusters, tmp_path: Path
) -> None:
    filled(clusters, "A", "B")
    if configurations == 1:
        both = deploy(tmp_path, clusters.by_alias, {"A->C": ALL, "B->C": ALL}, IDENTITY)
        assert "B->C.aggregate = true" in refused(both, "A->C")
        assert "orders" not in topics_of(clusters.c)
    else:
        deploy(tmp_path, clusters.by_alias, {"A->C": ALL}, IDENTITY, "one").windows()
        both = deploy(tmp_path, clusters.by_alias, {"B->C": ALL}, IDENTITY, "two")
    reason = refused(both, "B->C")
    assert "flow 'A->C' writes the same remote topic" in reason and "B->C.aggregate = true" in reason


def test_one_cluster_behind_two_listeners(clusters: Clusters, tmp_path: Path) -> None:
    filled(clusters, "B")
    with start_proxy(clusters.b) as proxy:
        same = {"B": clusters.b, "b2": proxy.bootstrap}
        with pytest.raises(EqualClusterIds, match=r"B->b2\.equal\.cluster\.ids\.allowed = true"):
            deploy(tmp_path, same, {"B->b2": "orders"}).windows()
    with pytest.raises(SameCluster) as caught:
        deploy(tmp_path, {"B": clusters.b, "b3": clusters.b}, {"B->b3": "orders"}).windows()
    assert not caught.value.transient and clusters.b.bootstrap in str(caught.value)
    assert topics_of(clusters.b) == {"orders"}


def test_two_clusters_with_one_id(tmp_path: Path, clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    from airmirror.clusters.protocol.routes import Routes

    filled(clusters, "A")
    read = Routes._read

    def as_formatted_with_one_id(self: Routes, topics: list[str]) -> object:
        missing = read(self, topics)
        self.cluster_id = "MkU3OEVBNTcwNTJENDM2Qk"
        return missing

    monkeypatch.setattr(Routes, "_read", as_formatted_with_one_id)
    with pytest.raises(EqualClusterIds):
        deploy(tmp_path, clusters.by_alias, {"A->B": "orders"}).windows()
    deploy(tmp_path, clusters.by_alias, {"A->B": "orders"}, "A->B.equal.cluster.ids.allowed = true").windows()
    assert assert_mirrored(clusters.a, "orders", clusters.b, "A.orders") == 10


def test_the_errors_survive_a_task(clusters: Clusters) -> None:
    import pickle

    for error in (
        AliasDiffers(
            flow="a->b", source="a", target="b", cluster_id="id", other_alias="x", other_flow="y->z", topic="t"
        ),
        AliasReused(flow="a->b", topic="t", target="b", other_flow="x->y", ours=("1", "2"), theirs=("3", "4")),
        SameCluster("a->b", "id", "a", "b", "h:1"),
        EqualClusterIds(
            flow="a->b", cluster_id="id", source="a", target="b", source_brokers="h:1", target_brokers="i:1"
        ),
    ):
        same: AirmirrorError = pickle.loads(pickle.dumps(error))
        assert str(same) == str(error)

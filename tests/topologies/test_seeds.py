"""Configurations as people have them, from MirrorMaker 2's guides: they load, and replicate what they name."""

from __future__ import annotations

import uuid
from pathlib import Path

from airmirror.clusters.admin.client import connect
from airmirror.clusters.admin.creation import create_partitions
from airmirror.clusters.admin.description import NewPartitions
from airmirror.config import Cluster, Configuration, parse
from airmirror.flows.post_window import do_tasks
from airmirror.flows.prepare import Opened, prepare
from airmirror.ledger import Ledger
from airmirror.naming import IdentityReplicationPolicy
from airmirror.topics.conflicts import refusals
from airmirror.topics.names import check, policy_of, select
from airmirror.topics.remote import Topic, plan
from airmirror.windows.results import WindowResult
from airmirror.windows.window import WindowOrder, run_window
from support.flows import in_this_process
from support.groups import commit
from support.topics import Record, assert_mirrored, create_topic, produce
from support.topologies import Clusters

BOTH_WAYS = """
clusters=cluster-1,cluster-2
cluster-1.bootstrap.servers=one:443
cluster-2.bootstrap.servers=two:443
cluster-1->cluster-2.enabled=true
cluster-1->cluster-2.topics=.*
cluster-2->cluster-1.enabled=true
cluster-2->cluster-1.topics=.*
replication.policy.separator=-
sync.topic.acls.enabled=false
refresh.topics.interval.seconds=60
refresh.groups.interval.seconds=60
"""


def test_aliases_that_hold_the_separator() -> None:
    configuration = parse(BOTH_WAYS, "seed")
    there, back = configuration.flow("cluster-1->cluster-2"), configuration.flow("cluster-2->cluster-1")
    assert select(there, ["orders", "a-b", "cluster-2-orders"]) == {
        "orders": "cluster-1-orders",
        "a-b": "cluster-1-a-b",
    }
    assert select(back, ["cluster-1-orders", "orders"]) == {"orders": "cluster-2-orders"}
    for flow in (there, back):
        assert refusals(flow, select(flow, ["orders"]), configuration.enabled, {}) == {}


def test_the_legacy_policy_under_the_name_that_the_guide_gives_it() -> None:
    text = BOTH_WAYS.replace("cluster-2->cluster-1.enabled=true", "cluster-2->cluster-1.enabled=false")
    text += "replication.policy.class=org.apache.kafka.mirror.LegacyReplicationPolicy\nrefresh.topics.enabled=false\n"
    configuration = parse(text, "seed")
    check(configuration)
    flow = configuration.flow()
    assert isinstance(policy_of(flow), IdentityReplicationPolicy) and select(flow, ["orders"]) == {"orders": "orders"}


def test_what_people_tune_producers_with_is_noted() -> None:
    tuned = "cluster-1->cluster-2.producer.acks=1\ncluster-2.producer.compression.type=gzip\n"
    notes = [str(note) for note in parse(BOTH_WAYS + tuned, "seed").notes]
    assert any("producer.acks" in note and "acks=all" in note for note in notes)
    assert not any("compression.type" in note for note in notes)  # it counts for records that come without


def test_topics_that_are_not_to_be_created() -> None:
    configuration = parse(BOTH_WAYS + "topic.creation.enable=false\n", "seed")
    flow = configuration.flow("cluster-1->cluster-2")
    planned = plan(flow, {"new": Topic(3), "grown": Topic(3)}, {"cluster-1-grown": Topic(2)})
    assert planned.create == () and planned.grow == () and planned.topics == {"grown": "cluster-1-grown"}
    (refused,) = planned.refused
    assert "--create --topic cluster-1-new --partitions 3" in str(refused)
    (note,) = planned.notes
    assert "cluster-1-grown has 2 partitions" in note and "topic.creation.enable = false" in note


class Pair:
    """Two clusters that mirror each other, as the guide has them, in this process."""

    there, back = "cluster-1->cluster-2", "cluster-2->cluster-1"

    def __init__(self, clusters: Clusters, directory: Path, more: str = "") -> None:
        text = BOTH_WAYS.replace("one:443", clusters.a.bootstrap).replace("two:443", clusters.b.bootstrap)
        for key in ("", "offset.storage.", "offset-syncs.topic.", "checkpoints.topic."):
            text += f"{key}replication.factor = 1\n"
        self.configuration: Configuration = parse(text + more, "seed")
        self.ledger = Ledger(f"sqlite:///{directory / 'ledger.db'}")

    def opened(self, flow: str) -> Opened:
        return Opened(self.configuration, self.configuration.flow(flow), self.ledger.flow(flow))

    def window(self, flow: str) -> tuple[WindowResult, tuple[str, ...]]:
        """A window and the tasks after it; what was warned of."""
        prepared = prepare(self.opened(flow))
        opened, window = prepared.opened, uuid.uuid4().hex[:8]
        result = run_window(
            opened.flow, opened.ledger, prepared.topics, in_this_process, WindowOrder(window, slots=lambda _: 1)
        )
        done = do_tasks(opened, ("emit_offset_syncs", "emit_checkpoints"), window)
        assert [each.error for each in done] == [None, None], done
        assert not prepared.refused
        return result, (*prepared.report.warnings, *prepared.report.notes)


def test_a_standby_direction_idles_until_it_has_topics_of_its_own(clusters: Clusters, tmp_path: Path) -> None:
    tuned = "".join(f"cluster-{n}.producer.acks = 1\ncluster-{n}.producer.compression.type = gzip\n" for n in (1, 2))
    pair = Pair(clusters, tmp_path, tuned)  # seed 003's tuning: checkpoints and offset syncs are written all the same
    create_topic(clusters.a, "orders", 1)
    produce(clusters.a, "orders", [Record(b"v%d" % n) for n in range(50)])
    commit(clusters.a, "billing", {("orders", 0): 20})
    assert pair.window(pair.there)[0].copied == 50
    assert_mirrored(clusters.a, "orders", clusters.b, "cluster-1-orders")
    for _ in range(2):
        result, warnings = pair.window(pair.back)
        assert result.rows == () and any("no topic of cluster 'cluster-2'" in warning for warning in warnings)
    create_topic(clusters.b, "orders", 1)
    produce(clusters.b, "orders", [Record(b"w")])
    assert pair.window(pair.back)[0].copied == 1
    assert_mirrored(clusters.b, "orders", clusters.a, "cluster-2-orders")
    assert pair.window(pair.there)[0].copied == 0  # nothing comes back


def test_nothing_new_is_looked_for_where_that_is_switched_off(clusters: Clusters, tmp_path: Path) -> None:
    pair = Pair(clusters, tmp_path, "refresh.topics.enabled = false\n")
    create_topic(clusters.a, "orders", 1)
    produce(clusters.a, "orders", [Record(b"v")])
    assert pair.window(pair.there)[0].copied == 1
    create_partitions(connect(Cluster("a", (clusters.a.bootstrap,), {})), [NewPartitions("orders", 1, 2)], 30)
    create_topic(clusters.a, "payments", 1)
    produce(clusters.a, "orders", [Record(b"w")], partition=1)
    produce(clusters.a, "payments", [Record(b"x")])
    result, warnings = pair.window(pair.there)
    assert result.copied == 0
    assert any("1 new topics are not replicated" in warning and "payments" in warning for warning in warnings)
    assert any("refresh.topics.enabled = false" in warning and "has 1 partitions" in warning for warning in warnings)

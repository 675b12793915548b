"""Leaders that move in mid-window, on clusters of three nodes: the window resumes, every record is compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from airmirror.clusters.protocol.routes import Routes
from airmirror.offsets.translation import Reason
from airmirror.partitions import TopicPartition
from airmirror.slot import source as source_module
from airmirror.slot.intake import Intake
from airmirror.windows.results import WindowResult
from airmirror_local.brokers import Broker, BrokerCluster
from support.flows import Mirror, mirror
from support.groups import commit
from support.moves import await_whole
from support.post_window import sync
from support.servers import keep
from support.topics import Record, await_nodes, produce

REPLICATED = {"replication.factor": "3", "offset.storage.replication.factor": "3"}

pytestmark = pytest.mark.timeout(900)


def records(count: int, start: int = 0) -> list[Record]:
    return [Record(b"v%d" % n, b"k%d" % (n % 50), (), 1_700_000_000_000 + n) for n in range(start, start + count)]


def leader(flow: Mirror, cluster: BrokerCluster, topic: str, side: str) -> Broker:
    """The node that leads the topic's first partition."""
    with Routes(getattr(flow.flow, side), "test") as routes:
        routes.refresh([topic])
        return cluster.brokers[routes.leader(TopicPartition(topic, 0)).node - 1]


def restart(cluster: BrokerCluster, broker: Broker) -> None:
    """Start a node again, and wait until the cluster is whole: the next test needs all three."""
    broker.restart()
    keep(broker.process)
    await_nodes(cluster, 3)
    await_whole(cluster)


def assert_verified(result: WindowResult) -> None:
    """Say of each partition what is wrong, or what the window has left."""
    assert result.is_verified, [
        f"{row.topic}-{row.partition} {row.outcome} {row.source_start} to {row.source_end}, lag {row.lag}, "
        f"verified {row.verified}: {type(row.error).__name__} {row.error}"
        for row in result.rows
    ]


def run_while_the_leader_dies(flow: Mirror, broker: Broker) -> None:
    """A window in whose middle a node is killed for good: it ends verified all the same."""
    take = Intake.take
    killed = []

    def kill(self: Intake, *args: object) -> None:
        take(self, *args)  # type: ignore[arg-type]
        if not killed:
            killed.append(True)
            broker.kill()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Intake, "take", kill)
        patch.setattr(source_module, "FETCH_BYTES", 4096)
        patch.setattr(source_module, "LEAST_PARTITION_BYTES", 2048)
        result = flow.run()
    assert killed
    assert_verified(result)


@pytest.mark.long
def test_a_leader_of_the_target_dies_in_mid_window(east: Broker, three: BrokerCluster, tmp_path: Path) -> None:
    flow = mirror(east, three, tmp_path, partitions=2, settings={**REPLICATED, "window.commit.bytes": "2000"})
    produce(east, flow.topic, records(100))
    assert_verified(flow.run())
    produce(east, flow.topic, records(2000, 100), records_per_batch=50)
    broker = leader(flow, three, flow.remote_topic, "target")
    try:
        run_while_the_leader_dies(flow, broker)
        assert flow.assert_equal() == 2100
    finally:
        restart(three, broker)


@pytest.mark.long
def test_a_leader_of_the_source_dies_in_mid_window(three: BrokerCluster, west: Broker, tmp_path: Path) -> None:
    flow = mirror(three, west, tmp_path, partitions=2, settings={"window.commit.bytes": "2000"}, replicas=3)
    produce(three, flow.topic, records(2000), records_per_batch=50)
    broker = leader(flow, three, flow.topic, "source")
    try:
        run_while_the_leader_dies(flow, broker)
        assert flow.assert_equal() == 2000
    finally:
        restart(three, broker)


@pytest.mark.long
def test_a_group_on_a_partition_without_a_leader_waits_for_one(
    east: Broker, three: BrokerCluster, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    settings = {"replication.factor": "1", "offset.storage.replication.factor": "3"}
    flow, group = mirror(east, three, tmp_path, settings=settings), topic("billing")
    produce(east, flow.topic, records(50))
    assert_verified(flow.run())
    commit(east, group, {(flow.topic, 0): 20})
    broker = leader(flow, three, flow.remote_topic, "target")
    broker.kill()
    try:
        assert [row.reason for row in sync(flow.opened, group)] == [Reason.NO_LEADER]
    finally:
        restart(three, broker)
    assert [row.reason for row in sync(flow.opened, group)] == [""]

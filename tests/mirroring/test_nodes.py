"""Scenarios of Cluster Mirroring (KIP-1279) with a source of three nodes: what it keeps of five records after a failback, and of
all that is written around two unclean elections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from airmirror.evidence.asking import ComparisonRequest
from airmirror.evidence.found import Kind
from airmirror.evidence.mirrors import compare_clusters
from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.flows.verification import compare_all
from airmirror.runbooks.failback.plan import failback_plan
from airmirror.runbooks.failback.rescue import rescue
from airmirror.runbooks.failback.returning import LeftOnSource
from airmirror.slot.errors import SourceDiverged
from airmirror.windows.resets import Choice
from airmirror_local.brokers import IMPATIENT, BrokerCluster, start_broker, start_cluster
from support.elections import bring_back, make_unclean, take_over
from support.failovers import DISASTER, PLANNED, at, fail_over, without_source
from support.returns import ORDER, REVERSE, Both, forward_and_reverse, write
from support.servers import keep
from support.topics import await_nodes, create_topic, delete_all_topics, read_all

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

INTERNAL = ("offset.storage", "offset-syncs.topic", "checkpoints.topic")


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    cluster = start_cluster(tmp_path_factory.mktemp("mirroring"), "three", 3, IMPATIENT)
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def both(three: BrokerCluster, tmp_path: Path) -> Iterator[Both]:
    """A topic on three nodes, and one node that it is replicated to under its own name, each test's own."""
    delete_all_topics(three)  # another test's node had the alias of this one's
    one = start_broker(tmp_path, "one", IMPATIENT)
    topic = create_topic(three, f"orders-{uuid4().hex[:8]}", replicas=3)
    settings = {f"{REVERSE}.{each}.replication.factor": "3" for each in INTERNAL}
    try:
        yield forward_and_reverse(
            three,  # type: ignore[arg-type]
            one,
            tmp_path,
            partitions=1,
            policy="identity",
            settings=settings,
            topic=topic,
        )
    finally:
        one.kill()


def restart_one_after_the_other(three: BrokerCluster) -> None:
    for broker in three.brokers:
        broker.restart()
        keep(broker.process)
        await_nodes(three, 3)


def copied_on(both: Both) -> int:
    result = both.window(both.forward)
    assert result.is_verified, [str(row.error) for row in result.rows]
    return result.copied


def test_five_records_of_five_come_through_a_failback(three: BrokerCluster, both: Both) -> None:
    """Scenario: three records are replicated, of two leader epochs; the flow stops, and one record is written to either side.

    Cluster Mirroring cuts the source's log where both sides were equal, and keeps four. Here all five are on the source
    afterwards, each once, and what was never replicated is on the target too.
    """
    kept = write(both.east, both.topic, 0, 2, partitions=1)
    restart_one_after_the_other(three)
    kept += write(both.east, both.topic, 2, 1, partitions=1)
    assert copied_on(both) == 3
    fail_over(without_source(both.forward), DISASTER)
    there = write(both.west, both.remote, 100, 1, partitions=1)
    here = write(both.east, both.topic, 200, 1, partitions=1)
    with pytest.raises(LeftOnSource, match="1 record"):
        both.fail_back()
    ((rescued,), plan) = rescue(both.forward, ORDER)
    assert (plan.never, plan.rescued) == (0, 1)
    both.fail_back()
    assert both.values(both.east)[0] == [*kept, *here, *there]
    assert both.values(both.west)[0] == [*kept, *there]
    assert [each.value for each in read_all(both.west, rescued.into)[0]] == here
    new = write(both.east, both.topic, 300, 2, partitions=1)
    assert copied_on(both) == 2
    assert both.values(both.west)[0] == [*kept, *there, *new]


def alone(both: Both) -> tuple[list[bytes | None], list[bytes | None]]:
    """The records that `airmirror compare` names, by their offsets, as those of the source alone, and of the target alone."""
    flow = both.forward.flow
    (row,) = compare_clusters(flow.source, flow.target, ComparisonRequest((both.topic,)))
    assert row.findings is not None and row.findings.are_all_named
    assert {each.kind for each in row.differences} <= {Kind.MISSING, Kind.LAGGING, Kind.EXTRA}
    here = [
        (each.source_offset, each.source_offset + each.count - 1) for each in row.differences if each.target_offset < 0
    ]
    there = [
        (each.target_offset, each.target_offset + each.count - 1) for each in row.differences if each.source_offset < 0
    ]
    return at(both.records(both.east), 0, here), at(both.records(both.west), 0, there)


def test_every_record_that_two_unclean_elections_lose_is_named(three: BrokerCluster, both: Both) -> None:
    """Scenario: a node that was away leads, and what was written meanwhile is lost; that happens again after a failover, and then
    the flow fails back.

    Cluster Mirroring ends with five of twelve records on both sides, and names none of the others. Here a window stops at what
    differs, names where, and waits for a person; the plan of the failback names what either side alone has, and all twelve
    are on the source in the end.
    """
    make_unclean(three, both.topic)
    first, second = three.brokers[0], three.brokers[1]

    def wrote(number: int, count: int) -> list[bytes]:
        return write(both.east, both.topic, number, count, partitions=1)

    try:
        shared = wrote(0, 1)
        assert copied_on(both) == 1
        lost: list[bytes] = []

        def while_away() -> None:
            lost.extend(wrote(1, 1))
            assert copied_on(both) == 1

        take_over(three, both.topic, second, first, while_away)
        since = wrote(10, 2)
        (row,) = both.window(both.forward).rows
        assert type(row.error) is SourceDiverged and "ends at offset 1 now" in str(row.error) and not row.copied
        assert alone(both) == (since, lost)
        accept = ResetOrder((both.topic,), (), Choice.ACCEPT_LOSS, by="ada", reason="node 1 is gone")
        (reset,) = carry_out(both.forward, accept)
        assert reset.start == 1 and "cut at offset 1, 2 was reached" in reset.facts.problem
        assert copied_on(both) == 2
        assert both.values(both.west)[0] == [*shared, *lost, *since]
        fail_over(both.forward, PLANNED)
        there = write(both.west, both.remote, 100, 2, partitions=1)
        take_over(three, both.topic, first, second, lambda: None)
        never = wrote(200, 6)
        assert both.values(both.east)[0] == [*shared, *lost, *never]
        assert alone(both) == (never, [*since, *there])
        plan = failback_plan(both.now(both.forward))
        (part,) = plan.partitions
        assert part.lost == len(since) and "cut at offset 1, 3 was reached" in part.problem
        assert at(both.records(both.east), 0, part.never.runs) == [*lost, *never]
        ((rescued,), _) = rescue(both.forward, ORDER)
        assert [each.value for each in read_all(both.west, rescued.into)[0]] == [*lost, *never]
        both.fail_back()
        # The first one that was lost is twice there: its loss was accepted, then it came back with its node.
        everything = [*shared, *lost, *never, *lost, *since, *there]
        assert len(set(everything)) == 12 and both.values(both.east)[0] == everything
        new = wrote(300, 2)
        assert copied_on(both) == 2 and both.values(both.west)[0][-2:] == new
        assert all(each.error is None for each in compare_all(both.forward, []))
    finally:
        bring_back(first, second)

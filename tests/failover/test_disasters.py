"""Clusters of three brokers that die, come back with a part of their data, or are cut off and live on, while producers write.

After each: every record that either side has acknowledged is in exactly one place: on the target, on the list of what was not
replicated, or rescued.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from airmirror.errors import AirmirrorError
from airmirror.flows.freezing import owners_now
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.plan import FailbackPlan, failback_plan
from airmirror.runbooks.failback.rescue import rescue
from airmirror.runbooks.failover.shown import FailoverOutcome, outcome_of
from airmirror.slot.errors import SlotFenced
from airmirror.windows.errors import FlowBusy, FlowFrozen
from airmirror.wire.moves import GroupMove
from airmirror.wire.owners import WHOLE
from airmirror_local.brokers import IMPATIENT, Broker, BrokerCluster, start_cluster
from support.disasters import Place, bring_back, kill_all, writing
from support.failovers import DISASTER, at, elsewhere, fail_over, with_a_group, with_groups, without_source
from support.flows import Mirror, at_once, mirror
from support.following import numbered, patiently
from support.groups import committed
from support.topics import await_in_sync, produce, read_all
from support.waiting import BUSY

ORDER = FailbackOrder(reason="INC-7", by="ada")
PARTITIONS = 3


@pytest.fixture
def source(tmp_path: Path) -> Iterator[BrokerCluster]:
    cluster = start_cluster(tmp_path, "source", 3, IMPATIENT)
    try:
        yield cluster
    finally:
        cluster.stop()


@dataclass
class Windows:
    """Windows one after the other, in a thread, until their source or their lease is gone; ``verified``: how many were that
    had something of every partition to copy."""

    flow: Mirror
    verified: int = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        stopping = threading.Event()

        def run() -> None:
            with suppress(AirmirrorError):
                while not stopping.is_set():
                    result = self.flow.run(at_once)
                    self.verified += result.is_verified and len(result.rows) == PARTITIONS

        with ThreadPoolExecutor(1) as pool:
            pool.submit(run)
            try:
                yield
            finally:
                stopping.set()

    def await_verified(self, count: int) -> None:
        for attempt in patiently():
            with attempt:
                assert self.verified >= count


def failed_over(flow: Mirror, directory: Path, *, is_cut_off: bool = False) -> FailoverOutcome:
    """Another deployment, whose ledger has seen nothing, fails over."""
    other = elsewhere(flow.opened, directory)
    other = without_source(other) if is_cut_off else other
    made = outcome_of(other, DISASTER, *fail_over(other, DISASTER))
    assert made.unproven == () and made.seconds < BUSY * 60
    return made


def replicated(source: BrokerCluster, west: Broker, directory: Path) -> Mirror:
    settings = {"window.commit.bytes": "20000", "window.max.ms": "10000"}
    return with_groups(mirror(source, west, directory, partitions=PARTITIONS, settings=settings, replicas=3), "none")


def in_exactly_one_place(flow: Mirror, plan: FailbackPlan, acknowledged: dict[Place, bytes]) -> tuple[int, int]:
    """How many of the acknowledged records are on the target, and on the list; none is in both, or in none."""
    there, here = read_all(flow.source, flow.topic), read_all(flow.target, flow.remote_topic)
    listed = [value for row in plan.partitions for value in at(there, row.partition, row.never.runs)]
    arrived = [each.value for its in here.values() for each in its]
    assert len(set(listed)) == len(listed) and len(set(arrived)) == len(arrived), "each once"
    assert not set(listed) & set(arrived)
    wanted = set(acknowledged.values())
    assert wanted <= set(listed) | set(arrived), sorted(wanted - set(listed) - set(arrived))[:5]
    return len(wanted & set(arrived)), len(wanted & set(listed))


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_all_brokers_are_killed_in_mid_transaction_while_producers_write(
    source: BrokerCluster, west: Broker, tmp_path: Path
) -> None:
    flow = replicated(source, west, tmp_path)
    running = Windows(flow)
    with (
        writing(source, flow.topic, f"plain-{uuid4().hex[:8]}") as plain,
        writing(source, flow.topic, f"open-{uuid4().hex[:8]}", transactional=True) as transactional,
        running.running(),
    ):
        running.await_verified(2)
        transactional.in_transaction.clear()
        assert transactional.in_transaction.wait(60)
        kill_all(source)
        made = failed_over(flow, tmp_path)
    assert made.plan.source_error and transactional.acknowledged and plain.acknowledged
    bring_back(source)
    with pytest.raises(FlowFrozen):  # the deployment that comes back with it
        flow.run()
    acknowledged = plain.acknowledged | transactional.acknowledged
    read_all(source, flow.topic)  # which waits until the transaction that was open has timed out
    plan = failback_plan(flow.opened)
    on_target, listed = in_exactly_one_place(flow, plan, acknowledged)
    assert on_target and listed, "it went in mid-window"
    chosen, after = rescue(elsewhere(flow.opened, tmp_path), ORDER)
    (into,) = {each.into for each in chosen}
    rescued = {each.value for its in read_all(west, into).values() for each in its}
    assert (after.never, after.rescued) == (0, plan.never) == (0, len(rescued))
    arrived = {each.value for its in read_all(west, flow.remote_topic).values() for each in its}
    assert not rescued & arrived and set(acknowledged.values()) <= rescued | arrived


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_cluster_that_comes_back_without_a_partition(source: BrokerCluster, west: Broker, tmp_path: Path) -> None:
    """What it had acknowledged there, and what had not been replicated, is on the list by its offsets; nobody takes it for
    copied."""
    flow = replicated(source, west, tmp_path)
    running = Windows(flow)
    with writing(source, flow.topic, f"plain-{uuid4().hex[:8]}") as plain, running.running():
        running.await_verified(2)
        kill_all(source)
        made = failed_over(flow, tmp_path)
    for broker in source.brokers:
        (log,) = broker.directory.rglob(f"{flow.topic}-1")
        shutil.rmtree(log)
    bring_back(source)
    await_in_sync(source, flow.topic, dict.fromkeys(range(PARTITIONS), 3))
    arrived = {point.partition: point.verified_end for point in made.plan.partitions}
    here = {each.value for its in read_all(west, flow.remote_topic).values() for each in its}
    for (partition, offset), value in plain.acknowledged.items():
        assert (value in here) == (offset < arrived[partition]), "on the target, or on the list of the failover"
    plan = failback_plan(flow.opened)
    lost, *_ = (row for row in plan.partitions if row.partition == 1)
    assert lost.problem and lost.lost == arrived[1] and lost.never.records == 0
    for row in plan.partitions:
        its = {value for (partition, offset), value in plain.acknowledged.items() if partition == row.partition}
        listed = set(at(read_all(source, flow.topic), row.partition, row.never.runs))
        assert row.partition == 1 or its <= here | listed
    produce(source, flow.topic, numbered(40), partition=1)  # at offsets that had been replicated
    _, after = rescue(flow.opened, ORDER)
    assert (after.never, after.rescued) == (0, plan.never + 40)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_cluster_that_is_cut_off_and_lives_on_is_reported_record_by_record(
    source: BrokerCluster, west: Broker, tmp_path: Path
) -> None:
    """Split brain: producers write on both sides, before, during and after the failover."""
    flow = replicated(source, west, tmp_path)
    running = Windows(flow)
    with (
        writing(source, flow.topic, f"east-{uuid4().hex[:8]}") as east_plain,
        writing(source, flow.topic, f"tx-{uuid4().hex[:8]}", transactional=True) as east_transactional,
    ):
        with running.running():
            running.await_verified(2)
            failed_over(flow, tmp_path, is_cut_off=True)
        before = len(east_plain.acknowledged)
        with writing(west, flow.remote_topic, f"west-{uuid4().hex[:8]}") as on_west:
            for attempt in patiently():
                with attempt:
                    assert len(on_west.acknowledged) > 200 and len(east_plain.acknowledged) > before + 200
    read_all(source, flow.topic)
    plan = failback_plan(flow.opened)
    there, here = read_all(source, flow.topic), read_all(west, flow.remote_topic)
    listed = {value for row in plan.partitions for value in at(there, row.partition, row.never.runs)}
    since = {value for row in plan.partitions for value in at(here, row.partition, row.since.runs)}
    everything = {each.value for its in here.values() for each in its}
    assert since == {value for value in everything if (value or b"").startswith(b"west-")}
    assert set(on_west.acknowledged.values()) <= since and len(since) == plan.since
    ours = set((east_plain.acknowledged | east_transactional.acknowledged).values())
    arrived = everything - since
    assert not listed & arrived and ours <= listed | arrived and ours & listed and ours & arrived


def test_a_failover_that_is_started_twice_at_once_is_done_once(east: Broker, west: Broker, tmp_path: Path) -> None:
    """From two Airflows: each may take the lease from the other, who ends; in the end it is as if there had been one."""
    flow, group = with_a_group(east, west, tmp_path)
    gone = [without_source(elsewhere(flow.opened, tmp_path)) for _ in range(2)]
    together = threading.Barrier(2)

    def start(number: int) -> AirmirrorError | None:
        together.wait(60)
        try:
            fail_over(gone[number], DISASTER)
        except (FlowBusy, SlotFenced) as error:
            return error
        return None

    with ThreadPoolExecutor(2) as pool:
        errors = list(pool.map(start, range(2)))
    assert None in errors, "one of them is through"
    for number, error in enumerate(errors):
        if error is not None:
            fail_over(gone[number], DISASTER)  # run again, it finds all done
    last = gone[0]
    assert owners_now(last).frozen.keys() == {WHOLE}
    assert committed(west, group) == {(flow.remote_topic, 0): 20}
    assert [each.before for each in last.ledger.of_kind(GroupMove)] == [4], "where it stood at the very first"
    assert len(read_all(west, flow.remote_topic)[0]) == 30

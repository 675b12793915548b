"""Taking over from the real MirrorMaker 2, under a running producer, and handing back to it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from airmirror.flows.verification import compare_all
from airmirror.partitions import TopicPartition
from airmirror.runbooks.takeover.copies import Continued, MirrorMakerRuns, await_stopped, take_over_copies
from airmirror.runbooks.takeover.handback import write_offsets
from airmirror.runbooks.takeover.handback_check import HandbackVerdict, check_handback
from airmirror.runbooks.takeover.order import HandbackOrder
from airmirror.runbooks.takeover.plan import takeover_plan
from airmirror_local.brokers import Broker
from airmirror_local.ports import LOOPBACK, free_port
from airmirror_local.processes import Process
from support.flows import Mirror, mirror
from support.hostile import delete_records
from support.mirrormaker import asked, await_records, await_state, connected, dedicated, numbered
from support.topics import Record, end_offsets, produce, read_all

SECONDS = 240


@contextmanager
def producing(flow: Mirror, partitions: int) -> Iterator[None]:
    """Records that occur once go to every partition all the time, some at a time."""
    ended = threading.Event()

    def run() -> None:
        number = 1_000
        while not ended.wait(0.2):
            for partition in range(partitions):
                produce(flow.source, flow.topic, numbered(20, 1_000_000 * partition + number), partition=partition)
            number += 20

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def await_more(flow: Mirror, more: int, process: Process) -> None:
    """Wait until the remote topic has so many more records."""
    await_records(
        flow.target, flow.remote_topic, sum(end_offsets(flow.target, flow.remote_topic).values()) + more, process
    )


def taken_over(flow: Mirror) -> list[Continued]:
    """What a take-over finds once MirrorMaker 2 is gone; a window has copied what came since."""
    await_stopped(flow.opened, SECONDS)
    rows = take_over_copies(flow.opened, "me", "takeover")
    assert not [str(row.error) for row in rows if row.error]
    result = flow.run()
    assert result.is_verified, [str(row.error) for row in result.rows]
    return rows


def assert_complete(flow: Mirror, again: int) -> None:
    """Every record is on the target in order; those that MirrorMaker 2 has copied twice are there again, and no other."""
    source, target = read_all(flow.source, flow.topic), read_all(flow.target, flow.remote_topic)
    for partition, records in source.items():
        assert list(dict.fromkeys(contents(target[partition]))) == contents(records), partition
    count = sum(map(len, source.values()))
    assert sum(map(len, target.values())) == count + again
    compared = compare_all(flow.opened, [])
    assert not [str(error) for row in compared for error in row.errors]
    assert sum(row.lost for row in compared) == 0


def assert_resumes(flow: Mirror) -> None:
    """After a hand-back its first record is the very next one, in every partition."""
    checked = check_handback(flow.opened, SECONDS)
    assert checked.has_resumed and checked.running, checked
    assert {row.verdict for row in checked.partitions} == {HandbackVerdict.RESUMED}, checked


def contents(records: Sequence[Record]) -> list[object]:
    return [record.content for record in records]


@pytest.mark.long
def test_three_round_trips_of_a_dedicated_one_under_a_running_producer(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    """It is killed in mid-stream each time, and resumes by itself at the very next record after what was verified."""
    flow, again, copied = mirror(east, west, tmp_path, partitions=2), 0, 0
    with producing(flow, 2):
        for number in range(3):
            with dedicated(flow, tmp_path) as process:
                await_more_once_there(flow, process, first=number == 0)
                if number:
                    assert_resumes(flow)
                running = takeover_plan(flow.opened)
                assert any("mm2" in each for each in running.running), running
                assert not [str(row.error) for row in running.partitions if row.error]
                process.kill()
            rows = taken_over(flow)
            again, copied = again + sum(row.again for row in rows), copied + sum(row.copied for row in rows)
    assert flow.run().is_verified
    assert copied > 0
    assert_complete(flow, again)


def await_more_once_there(flow: Mirror, process: Process, *, first: bool) -> None:
    if first:
        await_records(flow.target, flow.remote_topic, 200, process)
    else:
        await_more(flow, 200, process)


@pytest.mark.long
def test_one_that_is_exactly_once_and_was_killed_in_its_transaction(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Its transactions end by themselves, or are over in time; nothing is there twice."""
    flow = mirror(east, west, tmp_path, partitions=2)
    source, target = flow.flow.source.alias, flow.flow.target.alias
    exactly_once = {
        f"{target}.exactly.once.source.support": "enabled",
        f"{source}.consumer.isolation.level": "read_committed",
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": f"http://{LOOPBACK}:{free_port()}",
    }
    with producing(flow, 2):
        with dedicated(flow, tmp_path, exactly_once) as process:
            await_records(west, flow.remote_topic, 200, process)
            process.kill()
        ends = sum(end_offsets(west, flow.remote_topic).values())
        records = sum(map(len, read_all(west, flow.remote_topic, settled=False).values()))
        rows = taken_over(flow)
    assert records < ends, "its transactions have markers"
    assert flow.run().is_verified
    assert [row.again for row in rows] == [0, 0]
    assert_complete(flow, 0)


@pytest.mark.long
def test_a_gap_that_it_hid_is_found(east: Broker, west: Broker, tmp_path: Path) -> None:
    """While it was down the source deleted what it had not copied; it resumed after that, and told nobody."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(100))
    with dedicated(flow, tmp_path) as process:
        await_records(west, flow.remote_topic, 100, process)
        await_records(west, f"mm2-offsets.{flow.flow.source.alias}.internal", 1, process)
        process.stop(60)
    produce(east, flow.topic, numbered(100, 100))
    delete_records(east, flow.topic, 150)
    with dedicated(flow, tmp_path) as process:
        await_records(west, flow.remote_topic, 150, process)
        process.stop(60)
    await_stopped(flow.opened, SECONDS)
    found = takeover_plan(flow.opened)
    [incident] = found.histories[TopicPartition(flow.topic, 0)]
    assert incident.is_loss and incident.what.startswith("50 offsets "), incident
    assert "are not on the target, and the source has deleted them" in incident.what
    assert found.partitions[0].start == 200 and found.partitions[0].error is None


@pytest.mark.long
def test_one_that_is_started_again_while_the_flow_runs_is_named(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(100))
    assert flow.run().is_verified
    produce(east, flow.topic, numbered(100, 100))
    with dedicated(flow, tmp_path) as process:
        await_records(west, flow.remote_topic, 200, process)
        [row] = flow.run().rows
        assert row.copied == 0 and "MirrorMaker 2 was started again: MirrorMaker 2 at " in str(row.error)
        with pytest.raises(MirrorMakerRuns, match=r"is not stopped after 1 s, and nothing was taken over"):
            await_stopped(flow.opened, 1)
        process.kill()
    [found] = taken_over(flow)
    assert (found.copied, found.again, found.start) == (100, 0, 200)
    assert flow.assert_equal() == 200


@pytest.mark.long
def test_round_trips_of_a_connector_under_a_running_producer(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Stopped, taken over and handed back twice; at last its worker is killed, with copies after its progress."""
    again = 0
    with connected(east, west, tmp_path) as connector:
        flow = connector.flow(tmp_path)
        name = flow.flow.settings.takeover_connector_name
        with producing(flow, 2):
            for _ in range(2):
                await_more(flow, 200, connector.worker)
                [running] = takeover_plan(flow.opened).running
                assert f"1 task of connector {name!r}" in running
                asked(f"{connector.url}/stop", "PUT", {})
                await_state(connector, "STOPPED")
                again += sum(row.again for row in taken_over(flow))
                _, tasks = write_offsets(flow.opened, HandbackOrder(into=connector.offsets, connector=name))
                assert not [each.error for each in tasks if each.error]
                asked(f"{connector.url}/resume", "PUT", {})
                assert_resumes(flow)
            await_more(flow, 200, connector.worker)
            connector.worker.kill()
            again += sum(row.again for row in taken_over(flow))
        assert flow.run().is_verified
    assert_complete(flow, again)

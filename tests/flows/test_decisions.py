"""Decisions on partitions that the gate holds: every choice, carried out on real clusters, every record compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Settings
from airmirror.flows import reset
from airmirror.flows.decisions import carry_out_reset, waived
from airmirror.flows.freezing import freeze
from airmirror.flows.holds import record
from airmirror.flows.prepare import catch_up_ledger, prepare
from airmirror.flows.reset import ResetOrder, carry_out, consider
from airmirror.flows.verification import compare_all
from airmirror.naming import mapping_topic
from airmirror.offsets.writing import RecordsNotWritten
from airmirror.partitions import TopicPartition
from airmirror.slot.errors import ForeignRecords, TopicRecreated, of_flow
from airmirror.windows.judging import Verification, no_objection
from airmirror.windows.resets import Choice, ResetNotPossible
from airmirror.windows.window import WindowOrder, run_window, verify_window
from airmirror.wire.mappings import Action
from airmirror_local.brokers import Broker
from support.flows import Mirror, in_this_process, mirror
from support.topics import Record, assert_mirrored, create_topic, delete_topic, end_offsets, produce, read_all


def records(first: int, count: int) -> list[Record]:
    return [
        Record(b"value-%d" % n, b"key-%d" % (n % 7), (("h", b"%d" % n),), 1_700_000_000_000 + n)
        for n in range(first, first + count)
    ]


DIFFERING = [*records(0, 30), *records(500, 2), *records(32, 28)]


def read(flow: Mirror) -> dict[int, list[Record]]:
    """All records of the remote topic, wherever they lie."""
    found = read_all(flow.target, flow.remote_topic)
    return {partition: [replace(record, offset=-1) for record in records] for partition, records in found.items()}


def not_judged(flow: Mirror, window: str) -> None:
    prepared = prepare(flow.opened)
    run_window(
        flow.flow,
        flow.opened.ledger,
        prepared.topics,
        in_this_process,
        WindowOrder(window, slots=lambda _: 2, advance=False),
    )


def judged(flow: Mirror, window: str) -> Verification:
    return verify_window(flow.flow, flow.opened.ledger, no_objection, window=window, trusted=())


def put_in_place(flow: Mirror, records: dict[int, list[Record]]) -> None:
    """The remote topic holds other records by now, and the mapping records tell of it as if nothing had happened."""
    delete_topic(flow.target, flow.remote_topic)
    create_topic(flow.target, flow.remote_topic, len(records))
    for partition, found in records.items():
        produce(flow.target, flow.remote_topic, found, partition=partition, records_per_batch=7)
    with Routes(flow.flow.target, "test") as target:
        target.refresh([flow.remote_topic])
        now = target.topic_ids[flow.remote_topic]
    last = [replace(record, target_topic_id=now) for record in flow.opened.ledger.last_mappings().values()]
    with Appender(flow.flow.target, mapping_topic(flow.flow.source.alias)) as appender:
        appender.append([(record.encode_key(), record.encode_value()) for record in last])
    catch_up_ledger(flow.opened)


def copied_flow(east: Broker, west: Broker, tmp_path: Path) -> Mirror:
    """Two partitions of 60 records, copied and not judged."""
    flow = mirror(east, west, tmp_path, partitions=2)
    for partition in (0, 1):
        produce(east, flow.topic, records(0, 60), partition=partition, records_per_batch=9)
    not_judged(flow, "w1")
    return flow


def held_flow(copied: Mirror) -> Mirror:
    """Of the first partition the target has other records in the place of the 30th and 31st, and the gate holds it."""
    put_in_place(copied, {0: DIFFERING, 1: records(0, 60)})
    found = judged(copied, "gate")
    assert [(verdict.partition, verdict.error is None) for verdict in found.verdicts] == [(0, False), (1, True)]
    assert [key[1] for key in copied.opened.ledger.holds()] == [0]
    return copied


@pytest.fixture
def copied(east: Broker, west: Broker, tmp_path: Path) -> Mirror:
    return copied_flow(east, west, tmp_path)


@pytest.fixture
def held(copied: Mirror) -> Mirror:
    return held_flow(copied)


def rebuilt(flow: Mirror) -> None:
    """The ledger is the same after it was lost."""
    before = flow.opened.ledger.contents()
    flow.opened.ledger.forget()
    catch_up_ledger(flow.opened)
    assert flow.opened.ledger.contents() == before


def test_an_accepted_loss_is_what_differs_and_no_more(held: Mirror) -> None:
    flow, key = held, TopicPartition(held.topic, 0)
    (shown,) = consider(flow.opened, ResetOrder((flow.topic,), (), Choice.ACCEPT_LOSS))
    assert (shown.lost_first, shown.lost_end, shown.lost) == (30, 32, 2) and "not on the target as" in shown.problem
    record(flow.opened, [key], Action.ACCEPT_LOSS, reason="see OPS-9", by="ada")
    (done,) = carry_out_reset(flow.opened, [key], Action.ACCEPT_LOSS, reason="see OPS-9", by="ada", name="a")
    assert (done.lost_first, done.lost_end, done.lost) == (30, 32, 2)
    assert waived(flow.opened, [key], [59], Action.ACCEPT_LOSS) == {key: 59}
    assert not judged(flow, "gate2").errors and not flow.opened.ledger.holds()
    assert flow.opened.ledger.verified()[key].offset == 59
    for partition in (0, 1):
        produce(flow.source, flow.topic, records(60, 20), partition=partition)
    assert flow.run().copied == 40
    remote = read(flow)
    assert remote == {0: [*DIFFERING, *records(60, 20)], 1: records(0, 80)}
    rows = compare_all(flow.opened, [])
    assert [(row.partition, row.records, row.lost, row.error) for row in rows] == [(0, 78, 2, None), (1, 80, 0, None)]
    (decision,) = flow.opened.ledger.decisions()
    assert (decision.action, decision.by, decision.reason) == (Action.ACCEPT_LOSS, "ada", "see OPS-9")
    said = [(reset.lost_first, reset.lost_end, reset.by, reset.reason) for reset in flow.opened.ledger.resets()]
    assert said == [(30, 32, "ada", "see OPS-9")]
    assert consider(flow.opened, ResetOrder((flow.topic,), (), Choice.ACCEPT_LOSS)) == []
    rebuilt(flow)


def test_a_loss_is_accepted_of_a_topic_that_was_cut_and_differs(copied: Mirror) -> None:
    flow, key = copied, TopicPartition(copied.topic, 0)
    put_in_place(flow, {0: DIFFERING[:50], 1: records(0, 60)})
    cut, differing = carry_out_reset(flow.opened, [key], Action.ACCEPT_LOSS, reason="a test", by="ada", name="e")
    assert (cut.lost_first, cut.lost_end, cut.lost) == (50, 60, 10)
    assert (differing.lost_first, differing.lost_end, differing.lost) == (30, 32, 2)
    assert not judged(flow, "gate").errors
    produce(flow.source, flow.topic, records(60, 20), partition=0)
    assert flow.run().is_verified
    assert read(flow)[0] == [*DIFFERING[:50], *records(60, 20)]
    rows = compare_all(flow.opened, [])
    assert [(row.partition, row.records, row.lost, row.error) for row in rows] == [(0, 68, 12, None), (1, 60, 0, None)]
    rebuilt(flow)


def test_nobody_is_told_to_delete_what_others_copy_too(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path, settings={"aggregate": "true"})
    shared, alone = (
        of_flow(TopicRecreated("east", flow.topic, 0, "a", "b"), replace(flow.flow, settings=settings))
        for settings in (flow.flow.settings, Settings.of({}))
    )
    assert "--start-again" in str(shared) and "--recreate-remote-topic" not in str(shared)
    assert "--recreate-remote-topic" in str(alone)
    produce(east, flow.topic, records(0, 5))
    flow.run()
    for asked in (consider, carry_out):
        with pytest.raises(ResetNotPossible, match="would be deleted"):
            asked(flow.opened, ResetOrder((flow.topic,), (), Choice.START_AGAIN, recreate=True, by="a", reason="b"))
    assert read(flow)[0] == records(0, 5)


def test_to_a_frozen_topic_applications_may_write(east: Broker, west: Broker, tmp_path: Path) -> None:
    """To verify it is the way out of what they meet, and may not lead them to delete it."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(0, 5))
    flow.run()
    produce(west, flow.remote_topic, records(5, 1))
    (foreign,) = compare_all(flow.opened, [])
    assert isinstance(foreign.error, ForeignRecords)
    freeze(flow.opened, [flow.topic], reason="moved", by="ada")
    (frozen,) = compare_all(flow.opened, [])
    assert frozen.error is None and frozen.records == 5


def test_a_command_that_is_repeated_finishes_what_it_began(copied: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left to decide then; offset syncs and checkpoints are to go back."""
    put_in_place(copied, {0: records(0, 50), 1: records(0, 60)})
    order = ResetOrder((copied.topic,), (), Choice.ACCEPT_LOSS, by="ada", reason="a test")

    def fails(*_: object) -> None:
        raise RecordsNotWritten("west", "checkpoints", "planted")

    with monkeypatch.context() as faulty, pytest.raises(RecordsNotWritten):
        faulty.setattr(reset, "rewind_checkpoints", fails)
        carry_out(copied.opened, order)
    rewound: list[object] = []
    monkeypatch.setattr(reset, "rewind_checkpoints", lambda *given: rewound.append(set(given[2])))
    assert carry_out(copied.opened, order) == []
    assert rewound == [{TopicPartition(copied.remote_topic, 0)}]


@pytest.mark.long  # tests/offsets/test_resets.py starts again behind what is there
def test_a_partition_is_replicated_again_behind_what_is_there(held: Mirror) -> None:
    flow, key = held, TopicPartition(held.topic, 0)
    before = read(flow)
    for _ in range(2):  # the task tried again does it once
        carry_out_reset(flow.opened, [key], Action.START_AGAIN, reason="a test", by="ada", name="b")
    assert not flow.opened.ledger.holds()
    assert flow.run().is_verified
    remote = read(flow)
    assert remote == {0: before[0] + records(0, 60), 1: before[1]}
    assert [reset.partition for reset in flow.opened.ledger.resets()] == [0]


@pytest.mark.long  # tests/offsets/test_resets.py has a new remote topic, and its groups
def test_a_topic_is_replicated_again_into_a_new_one(held: Mirror) -> None:
    flow, key = held, TopicPartition(held.topic, 0)
    before, ends = read(flow), end_offsets(flow.target, flow.remote_topic)
    new = f"{flow.remote_topic}.2"
    for _ in range(2):
        carry_out_reset(flow.opened, [key], Action.NEW_TOPIC, reason="a test", by="ada", name="c")
    assert not flow.opened.ledger.holds()
    first = flow.run()
    assert first.is_verified and first.copied == 120 and {row.remote_topic for row in first.rows} == {new}
    assert assert_mirrored(flow.source, flow.topic, flow.target, new) == 120
    produce(flow.source, flow.topic, records(60, 5), partition=1)
    flow.opened.ledger.forget()  # a ledger that was lost does not lead back
    assert flow.run().copied == 5
    assert assert_mirrored(flow.source, flow.topic, flow.target, new) == 125
    assert (read(flow), end_offsets(flow.target, flow.remote_topic)) == (before, ends)
    assert sum(row.records for row in compare_all(flow.opened, [])) == 125
    # Again, into one more; a topic of the source that would have its name comes into no other's way.
    produce(flow.source, create_topic(flow.source, f"{flow.topic}.3"), records(0, 3))
    assert (
        consider(flow.opened, ResetOrder((flow.topic,), (), Choice.NEW_TOPIC))[0].facts.remote_topic
        == f"{flow.remote_topic}.3"
    )
    carry_out_reset(flow.opened, [key], Action.NEW_TOPIC, reason="a test", by="ada", name="d")
    assert flow.run().copied == 125
    assert assert_mirrored(flow.source, flow.topic, flow.target, f"{flow.remote_topic}.3") == 125

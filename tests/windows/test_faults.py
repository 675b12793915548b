"""Faults in the middle of a window: after each, no record is lost, none twice, order kept; and what can't be is refused."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from airmirror.cli import plain, show
from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.transactions import TransactionalId
from airmirror.flows.prepare import prepare
from airmirror.partitions import TopicPartition
from airmirror.slot import attempts, outbox
from airmirror.slot import source as source_module
from airmirror.slot.attempts import run_slot
from airmirror.slot.contract import Outcome, Slot, SlotResult
from airmirror.slot.intake import Intake
from airmirror.windows.errors import FlowBusy, SameCluster
from airmirror.windows.findings import GateRow
from airmirror.windows.window import WindowOrder, run_window, verify_window
from airmirror.wire.requests import PRODUCE, Produced
from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from airmirror_local.demo.mirror import runs
from airmirror_local.proxy import Exchange, Proxy
from support.faults import filled, in_a_process_that_dies, records
from support.flows import in_this_process, mirror
from support.topics import Record, admin, await_settled, create_topic, delete_topic, end_offsets, produce, read_all

NOT_LEADER_OR_FOLLOWER = 6


@pytest.mark.parametrize("commits", [0, 2])
def test_a_slot_killed_in_its_transaction_is_tried_again(
    east: Broker, west: Broker, tmp_path: Path, commits: int
) -> None:
    flow = filled(east, west, tmp_path, 2000)

    def killed_once(slots: Sequence[Slot]) -> list[SlotResult]:
        in_a_process_that_dies(slots, commits)
        return in_this_process(slots)  # as Spark does: the same slots, from the committed progress (invariant C)

    assert flow.run(killed_once).is_verified
    assert flow.assert_equal() == 2100


def test_a_killed_window_is_judged_by_the_next_one(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = filled(east, west, tmp_path)

    def dies(slots: Sequence[Slot]) -> list[SlotResult]:
        in_a_process_that_dies(slots, 2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        flow.run(dies)
    result = flow.run()
    assert result.is_verified
    assert flow.assert_equal() == 900
    assert not flow.opened.ledger.unverified()


def test_an_answer_to_a_commit_that_is_lost(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = filled(east, west, tmp_path)
    end = TransactionalId.end
    lost = [0]

    def lose_the_answer(self: TransactionalId, commit: bool) -> None:
        end(self, commit)
        if commit and lost[0] < 2:
            lost[0] += 1
            raise BrokerUnreachable(self.routes.alias, "the coordinator", "the answer was lost")

    monkeypatch.setattr(TransactionalId, "end", lose_the_answer)
    assert flow.run().is_verified
    assert lost[0] == 2
    assert flow.assert_equal() == 900


def test_a_stale_slot_is_fenced_by_a_new_window(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = filled(east, west, tmp_path)
    stale: list[Slot] = []

    def put_off(slots: Sequence[Slot]) -> list[SlotResult]:
        stale.extend(slots)
        return []

    flow.run(put_off)
    assert flow.run().is_verified
    ends = await_settled(west, flow.remote_topic)
    results = in_this_process(stale)
    assert {result.outcome for result in results} == {Outcome.FENCED}
    assert end_offsets(west, flow.remote_topic, "read_committed") == ends
    produce(east, flow.topic, records(50, 900))
    assert flow.run().is_verified
    assert flow.assert_equal() == 950


def test_a_stale_attempt_that_initialises_after_the_new_fence(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It bumps the new window's producer, sees the later lease and ends; the new window's slot resumes (invariant B)."""
    flow = filled(east, west, tmp_path)
    stale: list[Slot] = []
    flow.run(lambda slots: stale.extend(slots) or [])  # type: ignore[func-returns-value]
    take = Intake.take
    woken: list[SlotResult] = []

    def wake_the_stale_one(self: Intake, *args: object) -> None:
        if not woken:
            woken.append(SlotResult("", 0, Outcome.DONE, 0, 0.0))
            woken.extend(run_slot(stale[0]))
        take(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Intake, "take", wake_the_stale_one)
    assert flow.run().is_verified
    assert {result.outcome for result in woken[1:]} == {Outcome.FENCED}
    assert flow.assert_equal() == 900


def test_two_windows_at_once(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = filled(east, west, tmp_path)

    def with_another_meanwhile(slots: Sequence[Slot]) -> list[SlotResult]:
        produce(east, flow.topic, records(10, 900))
        with pytest.raises(FlowBusy, match="busy: window 'first'"):
            flow.run(window="second")
        return in_this_process(slots)

    assert flow.run(with_another_meanwhile, window="first").is_verified
    assert flow.run().is_verified
    assert flow.assert_equal() == 910


def test_a_record_altered_between_write_and_read_back(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airmirror.slot import delivery
    from airmirror.wire.batches import HEADER, HEADER_SIZE

    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(5000), records_per_batch=5000)  # large enough to be copied whole
    restamp = delivery.restamp

    def alter(buffer: memoryview, batch: object, *producer: int) -> None:
        position = batch.position + HEADER_SIZE + 20  # type: ignore[attr-defined]
        buffer[position] ^= 1
        restamp(buffer, batch, *producer)  # type: ignore[arg-type]

    assert HEADER.size == HEADER_SIZE
    monkeypatch.setattr(delivery, "restamp", alter)
    result = flow.run()
    assert not result.is_verified
    assert type(result.rows[0].error).__name__ == "ReadBackDiffers"
    assert read_all(west, flow.remote_topic)[0] == []
    monkeypatch.undo()
    assert flow.run().is_verified
    assert flow.assert_equal() == 5000


def test_a_difference_that_acks_let_through_is_found_by_verify(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airmirror.flows.verification import compare_all
    from airmirror.slot import delivery
    from airmirror.wire.batches import HEADER_SIZE

    flow = mirror(east, west, tmp_path, settings={"window.verify": "acks"})
    produce(east, flow.topic, records(5000), records_per_batch=5000)  # large enough to be copied whole
    restamp = delivery.restamp

    def alter(buffer: memoryview, batch: object, *producer: int) -> None:
        buffer[batch.position + HEADER_SIZE + 20] ^= 1  # type: ignore[attr-defined]
        restamp(buffer, batch, *producer)  # type: ignore[arg-type]

    monkeypatch.setattr(delivery, "restamp", alter)
    seen: list[GateRow] = []
    prepared = prepare(flow.opened)
    result = run_window(
        flow.flow,
        flow.opened.ledger,
        prepared.topics,
        in_this_process,
        WindowOrder("w", slots=lambda _: 1, advance=False),
    )
    assert [(row.copied, row.read_back) for row in result.rows] == [(5000, False)]

    def gate(findings: Sequence[GateRow]) -> Mapping[TopicPartition, str]:
        seen.extend(findings)
        return {finding.key: "asked" for finding in findings}

    for trusted in ({"w"}, set[str]()):
        verify_window(flow.flow, flow.opened.ledger, gate, window="gate", trusted=trusted)
    counts = [(finding.copied, finding.target_records, finding.digest_differences) for finding in seen]
    assert counts == [(5000, None, None), (5000, 5000, 1)], "nobody has measured it; then somebody has"
    assert [type(finding.error).__name__ for finding in seen] == ["NoneType", "TargetDiffers"]
    [row] = compare_all(flow.opened, [])
    assert type(row.error).__name__ == "TargetDiffers"


def test_acks_are_never_shown_as_verified(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path, settings={"window.verify": "acks"})
    produce(east, flow.topic, records(10))
    result = flow.run()
    told = plain.window(result, (), prepare(flow.opened).report)
    assert result.is_verified and told["verified"] is None and [row["verified"] for row in told["rows"]] == [None]
    console = Console(width=200)
    with console.capture() as capture:
        console.print(show.window(result), runs([result]))
    assert capture.get().count("not read back") == 2 and "yes" not in capture.get()


def test_records_of_others_hold_the_partition(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = filled(east, west, tmp_path)
    produce(west, flow.remote_topic, records(1), partition=0)
    result = flow.run()
    errors = {row.partition: type(row.error).__name__ for row in result.rows if row.error}
    assert errors == {0: "ForeignRecords"}
    assert next(row for row in result.rows if row.partition == 1).verified


def test_a_remote_topic_that_was_created_again(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = filled(east, west, tmp_path)
    delete_topic(west, flow.remote_topic)
    create_topic(west, flow.remote_topic, 2)
    result = flow.run()
    assert {type(row.error).__name__ for row in result.rows} == {"TargetTruncated"}
    assert sum(end_offsets(west, flow.remote_topic).values()) == 0


def test_a_source_topic_that_was_created_again(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = filled(east, west, tmp_path)
    flow.run()
    ends = await_settled(west, flow.remote_topic)
    delete_topic(east, flow.topic)
    create_topic(east, flow.topic, 2)
    produce(east, flow.topic, records(1500))
    result = flow.run()
    assert {type(row.error).__name__ for row in result.rows} == {"TopicRecreated"}
    assert end_offsets(west, flow.remote_topic) == ends


def test_records_deleted_before_they_were_copied(east: Broker, west: Broker, tmp_path: Path) -> None:
    from confluent_kafka import TopicPartition

    flow = filled(east, west, tmp_path)
    client = admin(east)
    for future in client.delete_records([TopicPartition(flow.topic, 0, 200)]).values():
        future.result()
    result = flow.run()
    errors = {row.partition: str(row.error) for row in result.rows if row.error}
    assert list(errors) == [0] and "were deleted before they were copied" in errors[0]
    assert next(row for row in result.rows if row.partition == 1).verified


def test_a_topic_that_vanishes_in_mid_window(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = filled(east, west, tmp_path)

    def vanish(slots: Sequence[Slot]) -> list[SlotResult]:
        delete_topic(east, flow.topic)
        return in_this_process(slots)

    result = flow.run(vanish)
    assert not result.is_verified
    assert all("deleted" in str(row.error) for row in result.rows)


@pytest.mark.long
def test_the_target_broker_restarts_in_mid_window(east: Broker, tmp_path: Path) -> None:
    west = start_broker(tmp_path, "restarting", IMPATIENT)
    try:
        flow = filled(east, west, tmp_path)
        take = Intake.take
        restarted = []

        def restart(self: Intake, *args: object) -> None:
            take(self, *args)  # type: ignore[arg-type]
            if not restarted:
                restarted.append(True)
                west.kill()
                west.restart()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Intake, "take", restart)
            result = flow.run()
        assert result.is_verified, [str(row.error) for row in result.rows]
        assert flow.assert_equal() == 900
    finally:
        west.kill()


def test_source_and_target_are_one_cluster(east: Broker, tmp_path: Path) -> None:
    flow = mirror(east, east, tmp_path)
    with pytest.raises(SameCluster):
        flow.run()


def test_a_window_cut_by_bytes_is_continued(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = filled(east, west, tmp_path)

    def small_fetches(slots: Sequence[Slot]) -> list[SlotResult]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(source_module, "FETCH_BYTES", 4096)
            patch.setattr(source_module, "LEAST_PARTITION_BYTES", 2048)
            return in_this_process([replace(slot, max_bytes=3000) for slot in slots])

    result = flow.run(small_fetches)
    assert result.is_cut and 0 < result.copied < 800
    assert flow.run().is_verified
    assert flow.assert_equal() == 900


def test_a_target_broker_that_hangs_is_waited_for(
    east: Broker, west: Broker, west_proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections stay open and nothing answers; the attempt ends in time, the next one resumes."""
    monkeypatch.setattr(outbox, "ANSWER_SECONDS", 1.0)
    flow = filled(east, west, tmp_path, through=west_proxy.bootstrap)
    hangs, over = list[threading.Timer](), threading.Event()

    def hold(exchange: Exchange, frame: bytes) -> bytes:
        if exchange.api_key == PRODUCE and not hangs:
            hangs.append(threading.Timer(3.0, over.set))
            hangs[0].start()
        if hangs:
            assert over.wait(60)
        return frame

    def hanging(slots: Sequence[Slot]) -> list[SlotResult]:
        west_proxy.on_answer = hold
        return in_this_process(slots)

    result = flow.run(hanging)
    assert hangs and over.is_set()
    hangs[0].join()
    assert result.is_verified, [str(row.error) for row in result.rows]
    assert flow.assert_equal() == 900


@pytest.mark.parametrize("refused", [range(1), range(1, 2), range(3)])
def test_a_broker_that_took_what_it_says_it_did_not_takes_it_once(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: range
) -> None:
    """Its leadership went to another and came back, with more batches of the partition on their way: all are sent again."""
    flow = mirror(east, west, tmp_path)
    for number in range(3):  # batches that no other fits in with
        produce(east, flow.topic, [Record(bytes([number]) * 900_000, b"key")])
    decode, attempt = outbox.decode_produce, attempts._attempt
    answered, begun, to = list[Produced](), list[object](), TopicPartition(flow.remote_topic, 0)

    def denying(*answer: object) -> tuple[int, dict[TopicPartition, Produced]]:
        throttle_ms, found = decode(*answer)  # type: ignore[arg-type]
        if to in found:
            answered.append(found[to])
            if len(answered) - 1 in refused:
                found[to] = Produced(NOT_LEADER_OR_FOLLOWER, -1, None)
        return throttle_ms, found

    def counted(**given: object) -> bool:
        begun.append(given)
        return attempt(**given)  # type: ignore[arg-type]

    monkeypatch.setattr(outbox, "decode_produce", denying)
    monkeypatch.setattr(attempts, "_attempt", counted)
    assert flow.run().is_verified
    assert len(begun) == 1, "it is sent again within the transaction"
    offsets = [each.base_offset for each in answered]
    again = offsets[refused.start : 3]
    assert offsets == [0, 1, 2, *again] and {each.error for each in answered} == {0}, "the broker says where it lies"
    assert flow.assert_equal() == 3 and end_offsets(west, flow.remote_topic) == {0: 4}  # with the transaction's end

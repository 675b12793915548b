"""A flow that is frozen by a record in the mapping topic: no window of anybody writes there until it is unfrozen."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from airmirror.errors import AirmirrorError
from airmirror.flows.freezing import NoSuchTopic, NotFrozen, freeze, owners_now, unfreeze
from airmirror.flows.holds import DecisionIncomplete
from airmirror.flows.maintenance import prune
from airmirror.flows.prepare import Opened, prepare, read_again
from airmirror.flows.reset import Choice, ResetOrder, carry_out, consider
from airmirror.flows.status import flow_status
from airmirror.ledger import FreezeLost, Ledger
from airmirror.naming import mapping_topic
from airmirror.offsets.translation import Reason
from airmirror.slot.contract import Outcome, Slot, SlotResult
from airmirror.topics.internal import ensure_internal_topics
from airmirror.windows import driver, fence
from airmirror.windows.errors import FlowBusy, FlowFrozen, TopicFrozen
from airmirror.windows.resets import ResetNotPossible
from airmirror.windows.window import WindowOrder, run_window
from airmirror.wire.owners import WHOLE
from airmirror_local.brokers import Broker
from support.deployment import Deployment
from support.failovers import without_source
from support.flows import Mirror, at_once, in_this_process, mirror
from support.following import FOLLOW, SETTINGS, await_copied, beside, ended_by_event, numbered
from support.groups import commit, committed
from support.ledgers import MAPPINGS, TOPIC_ID, compacted, written
from support.post_window import sync
from support.topics import Record, assert_mirrored, await_settled, create_topic, delete_topic, end_offsets, produce

WHY = {"reason": "east burns", "by": "ada"}


def with_new_ledger(flow: Mirror, directory: Path) -> Opened:
    """The same flow of another deployment, which has seen nothing of it yet."""
    return replace(flow.opened, ledger=Ledger(f"sqlite:///{directory}/{uuid4().hex}.db").flow(flow.flow.name))


def nothing_runs(slots: Sequence[Slot]) -> list[SlotResult]:
    raise AssertionError(f"slots of a frozen flow: {slots}")


def test_nobody_writes_for_a_frozen_flow_until_it_is_opened(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path, partitions=2)
    prepared = prepare(flow.opened)
    for begin in (0, 25):  # of the first window there is something to prune
        produce(east, flow.topic, numbered(25, begin))
        assert flow.run().is_verified
    assert [each.topic for each in freeze(flow.opened, (), **WHY)] == [WHOLE]
    assert freeze(flow.opened, (), **WHY) == [], "it is frozen already"
    produce(east, flow.topic, numbered(50, 50))
    ends, elsewhere = await_settled(west, flow.remote_topic), with_new_ledger(flow, tmp_path)
    for opened in (flow.opened, elsewhere):
        with pytest.raises(FlowFrozen, match=r"frozen by ada at .*: east burns; .*airmirror flow unfreeze") as refused:
            prepare(opened)
        assert not refused.value.transient
    for opened in (flow.opened, with_new_ledger(flow, tmp_path)):  # who has prepared before, or looks at nothing
        with pytest.raises(FlowFrozen):
            run_window(
                opened.flow,
                opened.ledger,
                prepared.topics,
                nothing_runs,
                WindowOrder("late", slots=lambda _: 1, advance=False),
            )
    again = ResetOrder((flow.topic,), (), Choice.START_AGAIN, recreate=True, by="bo", reason="why not")
    for resets in (carry_out, consider):
        with pytest.raises(FlowFrozen):
            resets(elsewhere, again)
    mappings = flow.opened.ledger.contents()["mappings"]
    assert prune(without_source(flow.opened), 0, now_ms=2**52).mappings == 0, "mappings stay as they are"
    assert end_offsets(west, flow.remote_topic) == ends and flow.opened.ledger.contents()["mappings"] == mappings
    status = flow_status(flow.opened)
    assert "by ada" in status.frozen[WHOLE] and status.refused == [] and not status.needs_somebody
    unfreeze(elsewhere, (), reason="the fire is out", by="bo")
    assert owners_now(flow.opened).frozen == {} and flow_status(flow.opened).frozen == {}
    assert flow.run().is_verified and flow.assert_equal() == 100


def test_a_window_that_runs_ends_as_fenced(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = mirror(east, west, tmp_path, partitions=2, settings=SETTINGS)
    ended_by_event(monkeypatch)
    produce(east, flow.topic, numbered(40))
    ends: dict[int, int] = {}
    results: list[SlotResult] = []

    def freezing() -> None:
        await_copied(flow, 40)
        freeze(with_new_ledger(flow, tmp_path), (), **WHY)
        ends.update(await_settled(west, flow.remote_topic))
        produce(east, flow.topic, numbered(40, 40))

    def execute(given: Sequence[Slot]) -> list[SlotResult]:
        with beside(freezing, threading.Event()):  # nothing but the freeze ends the window
            results.extend(at_once(given))
        return results

    flow.run(execute, "follows", 2, FOLLOW)
    assert {each.outcome for each in results} == {Outcome.FENCED}
    assert end_offsets(west, flow.remote_topic) == ends
    with pytest.raises(FlowFrozen):
        flow.run()
    unfreeze(flow.opened, (), **WHY)
    monkeypatch.undo()
    later = replace(
        flow, opened=replace(flow.opened, flow=replace(flow.flow, window=replace(flow.flow.window, follow_ms=0)))
    )
    assert later.run().is_verified and later.assert_equal() == 80


def test_who_slept_before_he_wrote_freezes_nothing(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """His lease is over when he has looked at it: a window copies on, and its fence has ended what he would write."""
    monkeypatch.setattr(fence, "LEASE_MS", 1_000)
    monkeypatch.setattr(fence, "RENEW_SECONDS", 1_000.0)
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(10), partition=0)
    assert flow.run().is_verified
    other, put, copied = replace(flow, opened=with_new_ledger(flow, tmp_path)), driver.put_records, list[int]()

    def sleep_and_put(*given: Any) -> None:
        monkeypatch.setattr(driver, "put_records", put)
        produce(east, flow.topic, numbered(10, 10), partition=0)
        deadline = time.monotonic() + 30.0
        while not copied:
            try:
                copied.append(other.run().copied)
            except FlowBusy:  # until the lease is over
                assert time.monotonic() < deadline
        put(*given)

    monkeypatch.setattr(driver, "put_records", sleep_and_put)
    with pytest.raises(AirmirrorError):
        freeze(flow.opened, (), **WHY)
    assert copied == [10] and owners_now(other.opened).frozen == {}
    produce(east, flow.topic, numbered(5, 20), partition=0)
    assert flow.run().is_verified and flow.assert_equal() == 25


def test_a_topic_is_frozen_and_the_others_continue(east: Broker, west: Broker, tmp_path: Path) -> None:
    other = create_topic(east, f"other-{uuid4().hex[:8]}")
    first = mirror(east, west, tmp_path)
    flow = mirror(east, west, tmp_path, topic=first.topic, settings={"topics": f"{first.topic}, {other}"})
    remote = f"{flow.flow.source.alias}.{other}"
    for topic in (flow.topic, other):
        produce(east, topic, numbered(10), partition=0)
    before = prepare(flow.opened)
    assert flow.run().is_verified
    with pytest.raises(NoSuchTopic, match="nope"):
        freeze(flow.opened, ("nope",), **WHY)
    assert [each.topic for each in freeze(flow.opened, (other,), **WHY)] == [other]
    for topic in (flow.topic, other):
        produce(east, topic, numbered(10, 10), partition=0)
    late = run_window(
        flow.flow,
        flow.opened.ledger,
        before.topics,
        in_this_process,
        WindowOrder("late", slots=lambda _: 1, advance=False),
    )
    assert [type(row.error) for row in late.rows if row.topic == other] == [TopicFrozen]
    assert assert_mirrored(east, flow.topic, west, flow.remote_topic) == 20, "the others continue"
    for resets in (carry_out, consider):
        with pytest.raises(ResetNotPossible, match="frozen by ada"):
            resets(flow.opened, ResetOrder((other,), (), Choice.START_AGAIN, by="bo", reason="why not"))
    prepared = prepare(with_new_ledger(flow, tmp_path))
    assert other not in prepared.topics and "frozen by ada" in " ".join(prepared.refused)
    assert await_settled(west, remote) == {0: 11}, "ten records and a marker"
    with pytest.raises(NotFrozen, match=f"frozen topics: {other}"):
        unfreeze(flow.opened, (flow.topic,), **WHY)
    unfreeze(flow.opened, (other,), **WHY)
    assert flow.run().is_verified and assert_mirrored(east, other, west, remote) == 20


def test_groups_of_a_frozen_flow_are_left_where_they_are(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, group = mirror(east, west, tmp_path), f"group-{uuid4().hex[:8]}"
    settings = replace(
        flow.flow.settings, groups=(group,), sync_group_offsets_enabled=True, sync_group_offsets_interval_seconds=0
    )
    opened = replace(flow.opened, flow=replace(flow.flow, settings=settings))
    produce(east, flow.topic, numbered(10), partition=0)
    flow.run()
    commit(east, group, {(flow.topic, 0): 5})
    freeze(opened, (), **WHY)
    assert [row.reason for row in sync(opened, group)] == [Reason.FROZEN]
    assert committed(west, group) == {}
    unfreeze(opened, (), **WHY)
    assert [row.reason for row in sync(opened, group)] == [""]


@pytest.mark.long
def test_freezes_outlive_compaction_and_a_new_ledger(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(10), partition=0)
    flow.run()
    for _ in range(2):
        freeze(flow.opened, (), **WHY)
        unfreeze(flow.opened, (), **WHY)
    freeze(flow.opened, (flow.topic,), **WHY)
    owners = flow.opened.ledger.owners()
    assert {topic: each.owner.name for topic, each in owners.records.items()} == {WHOLE: "SOURCE", flow.topic: "TARGET"}
    read_again(flow.opened)
    assert flow.opened.ledger.owners() == owners
    entries = compacted([written(offset, each) for offset, each in enumerate(owners.records.values())])
    cleaned = Ledger(f"sqlite:///{tmp_path}/cleaned.db").flow("a->b")
    cleaned.load(MAPPINGS, TOPIC_ID, entries, {0: len(entries)})
    assert cleaned.owners() == owners


@pytest.mark.parametrize("made_again", [False, True])
def test_a_freeze_is_not_lost_with_its_mapping_topic(
    east: Broker, west: Broker, tmp_path: Path, made_again: bool
) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(10), partition=0)
    assert flow.run().is_verified
    freeze(flow.opened, (), **WHY)
    delete_topic(west, mapping_topic(flow.flow.source.alias))
    if made_again:
        ensure_internal_topics(flow.flow)
    for work in (prepare, prepare, lambda opened: freeze(opened, (), **WHY)):
        with pytest.raises(FreezeLost, match=r"`airmirror ledger rebuild --flow .*`airmirror flow freeze --reason"):
            work(flow.opened)
    if not made_again:
        delete_topic(west, mapping_topic(flow.flow.source.alias))  # the last one has made it
    read_again(flow.opened)
    assert flow.opened.ledger.owners().frozen == {} and freeze(flow.opened, (), **WHY)
    with pytest.raises(FlowFrozen):
        prepare(flow.opened)


def test_a_freeze_needs_a_person_and_a_reason(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    for wrong in ({"reason": " ", "by": "ada"}, {"reason": "why", "by": ""}):
        with pytest.raises(DecisionIncomplete):
            freeze(flow.opened, (), **wrong)
    with pytest.raises(NotFrozen):
        unfreeze(flow.opened, (), **WHY)


@pytest.mark.long
def test_the_commands_freeze_and_open(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic = create_topic(east, f"orders-{uuid4().hex[:8]}")
    produce(east, topic, [Record(b"v")], partition=0)
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, topic)
    reason = ("--reason", "east burns", "--by", "ada")
    dry = command("flow", "freeze", *reason)
    assert dry.exit_code == 0 and "would be frozen" in dry.stdout and "Nothing was written" in dry.stdout
    assert "frozen" not in command("status").stdout
    assert f"flow {command.flow} is frozen" in command("flow", "freeze", *reason, "--yes").stdout
    shown = command("status")
    assert "frozen" in shown.stdout and "by ada" in shown.stdout and "east burns" in shown.stdout
    refused = command("run-window", "--local", "--no-expectations")
    assert (
        refused.exit_code == 1 and "was frozen by ada" in refused.output and "airmirror flow unfreeze" in refused.output
    )
    assert "would be unfrozen" in command("flow", "unfreeze", *reason).stdout
    assert f"flow {command.flow} is unfrozen" in command("flow", "unfreeze", *reason, "--yes").stdout
    assert command("flow", "unfreeze", *reason, "--yes").exit_code == 2

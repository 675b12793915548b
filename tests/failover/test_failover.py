"""A failover carried out: planned without any loss, after a disaster with what the target alone can prove, and undone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.protocol import stable
from airmirror.clusters.protocol.stable import OffsetsHeld
from airmirror.flows import freezing
from airmirror.flows.freezing import owners_now, unfreeze
from airmirror.flows.holds import add_holds
from airmirror.flows.post_window import CHECKPOINTS, do_task
from airmirror.flows.prepare import prepare
from airmirror.naming import mapping_topic
from airmirror.report.files import write_document
from airmirror.runbooks import moving
from airmirror.runbooks.draining import DrainStopped, NotDrained, SourceNotQuiet, stopped
from airmirror.runbooks.errors import CannotUndo
from airmirror.runbooks.failover import alone, steps
from airmirror.runbooks.failover.order import FailoverOrder
from airmirror.runbooks.failover.plan import failover_plan
from airmirror.runbooks.failover.shown import outcome_of, shown_outcome
from airmirror.runbooks.failover.steps import GroupsNotExact, SourceAnswers, SourceGone, WrittenWhileFreezing
from airmirror.runbooks.failover.undo import undo, undo_plan
from airmirror.runbooks.moving import GroupsActive, MappingWriter
from airmirror.windows.errors import FlowBusy, FlowFrozen
from airmirror.windows.window import WindowOrder, run_window
from airmirror.wire.moves import GroupMove
from airmirror.wire.owners import WHOLE
from airmirror_local.brokers import Broker
from support.failovers import (
    DISASTER,
    PLANNED,
    a_group,
    elsewhere,
    fail_over,
    windowed,
    with_a_group,
    with_groups,
    without_source,
)
from support.faults import at_the_last_moment
from support.flows import in_this_process, mirror
from support.following import numbered
from support.groups import commit, committed, held, member, read_with_group
from support.killing import killed_at
from support.topics import Record, create_topic, delete_topic, open_transaction, produce, read_all


def test_a_planned_failover_loses_nothing_and_doubles_nothing(east: Broker, west: Broker, tmp_path: Path) -> None:
    group = f"g-{uuid4().hex[:8]}"
    flow = with_groups(mirror(east, west, tmp_path, partitions=2), group)
    produce(east, flow.topic, numbered(60))
    windowed(flow)
    produce(east, flow.topic, numbered(60, 60))
    read = read_with_group(east, group, flow.topic, {0: 25, 1: 25})
    left, moved, seconds = fail_over(flow.opened, PLANNED)
    made = outcome_of(flow.opened, PLANNED, left, moved, seconds)
    assert (
        made.is_good
        and made.plan.missing == 0
        and "0 offsets are known not to be verified" in shown_outcome(made).headline
    )
    assert made.plan.names == {flow.topic: flow.remote_topic}
    assert flow.assert_equal() == 120
    with pytest.raises(FlowFrozen):
        flow.run()
    rest = read_with_group(west, group, flow.remote_topic)
    everything = read_all(east, flow.topic)
    for partition in (0, 1):
        both = [each.content for each in read[partition]] + [each.content for each in rest[partition]]
        assert both == [each.content for each in everything[partition]], "each record once, in order"


def test_a_position_that_a_transaction_holds_is_waited_for(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = f"g-{uuid4().hex[:8]}"
    flow = with_groups(mirror(east, west, tmp_path), group)
    produce(east, flow.topic, numbered(10), partition=0)
    commit(east, group, {(flow.topic, 0): 3})
    flow.run()
    monkeypatch.setattr(stable, "STABLE_SECONDS", 0.2)
    with held(east, group, {(flow.topic, 0): 5}, group), pytest.raises(OffsetsHeld, match=f"{group} in {flow.topic}-0"):
        steps.positions(flow.opened, PLANNED)
    monkeypatch.undo()
    assert [row.committed.offset for row in steps.positions(flow.opened, PLANNED)] == [5]


def test_a_source_that_is_not_quiet_is_named_and_nothing_is_frozen(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = with_groups(mirror(east, west, tmp_path), "none")
    produce(east, flow.topic, numbered(10), partition=0)
    with open_transaction(east, flow.topic, numbered(5), partition=0):
        for frozen in (False, True):  # before it is frozen, and since
            if frozen:
                freezing.freeze(flow.opened, (), reason="by hand", by="ada")
            with pytest.raises(
                SourceNotQuiet,
                match=r"this run froze nothing(.|\n)*open transaction from offset 10 on, by producer \d+ of transactional id "
                r"test-.* \(epoch \d+, last sequence 4, .*open",
            ):
                fail_over(flow.opened, PLANNED)
            assert (WHOLE in owners_now(flow.opened).frozen) == frozen


@pytest.mark.parametrize("lost", ["the source", "the target", "a name"])
def test_what_windows_stop_at_is_not_drained(east: Broker, west: Broker, tmp_path: Path, lost: str) -> None:
    """A topic that was made again, on either side, and one that can't be replicated: no offset says so."""
    topic = create_topic(east, f"orders-{uuid4().hex}")
    long = create_topic(east, f"long-{uuid4().hex}".ljust(249, "-")) if lost == "a name" else topic
    settings = {"topics": f"{topic}, {long}"}
    flow = with_groups(mirror(east, west, tmp_path, topic=topic, settings=settings), "none")
    produce(east, flow.topic, numbered(30), partition=0)
    windowed(flow)
    if lost == "the source":
        delete_topic(east, flow.topic)
        produce(east, create_topic(east, flow.topic), numbered(7), partition=0)
        assert failover_plan(flow.opened).missing == 7
    elif lost == "the target":
        delete_topic(west, flow.remote_topic)
    assert any(each.level == "stop" for each in failover_plan(flow.opened).findings)
    with pytest.raises(DrainStopped, match=long if lost == "a name" else "deleted"):
        fail_over(flow.opened, PLANNED)
    with pytest.raises(NotDrained):
        steps.freeze_step(flow.opened, PLANNED)
    assert owners_now(flow.opened).frozen == {}
    if lost == "the source":
        freezing.freeze(flow.opened, (), reason="by hand", by="ada")
        with pytest.raises(WrittenWhileFreezing, match=f"{topic}-0: verified up to 0, the source ends at 7"):
            fail_over(flow.opened, PLANNED)


def test_a_topic_that_no_window_has_made_yet_stops_nothing(east: Broker, west: Broker, tmp_path: Path) -> None:
    """A next window would make it."""
    topic, new = create_topic(east, f"orders-{uuid4().hex}"), f"new-{uuid4().hex}"
    settings = {"topics": f"{topic}, {new}"}
    flow = with_groups(mirror(east, west, tmp_path, topic=topic, settings=settings), "none")
    produce(east, flow.topic, numbered(30), partition=0)
    windowed(flow)
    produce(east, create_topic(east, new), numbered(1), partition=0)
    assert stopped(flow.opened) == stopped(flow.opened, {new}) == []


def test_what_is_written_at_the_last_moment_keeps_the_flow_open(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = with_groups(mirror(east, west, tmp_path), "none")
    produce(east, flow.topic, numbered(10), partition=0)
    at_the_last_moment(
        monkeypatch, steps, "drain", after=lambda: produce(east, flow.topic, numbered(1, 10), partition=0)
    )
    with pytest.raises(NotDrained, match=f"{flow.topic}-0: verified up to 10, the source ends at 11"):
        fail_over(flow.opened, PLANNED)
    assert owners_now(flow.opened).frozen == {}
    monkeypatch.undo()
    more = numbered(3, 11)
    at_the_last_moment(
        monkeypatch, freezing, "commit_change", before=lambda: produce(east, flow.topic, more, partition=0)
    )
    for _ in range(2):  # after the last look: it is frozen, and says so, as often as it is done
        with pytest.raises(WrittenWhileFreezing, match=f"{flow.topic}-0"):
            fail_over(flow.opened, PLANNED)
    assert fail_over(flow.opened, replace(DISASTER, anyway=True))[0] == [], "these records stay there"


def test_a_disaster_is_judged_from_the_target_alone(east: Broker, west: Broker, tmp_path: Path) -> None:
    """What is committed and not judged is proven by its digests; a ledger that has seen nothing does the same."""
    group, ahead = f"g-{uuid4().hex[:8]}", f"h-{uuid4().hex[:8]}"
    flow = with_groups(mirror(east, west, tmp_path), group, ahead)
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 20})
    commit(east, ahead, {(flow.topic, 0): 30})
    windowed(flow)
    produce(east, flow.topic, numbered(10, 30), partition=0)
    run_window(
        flow.flow,
        flow.opened.ledger,
        prepare(flow.opened).topics,
        in_this_process,
        WindowOrder("dies", slots=lambda _: 1, advance=False),
    )
    produce(east, flow.topic, numbered(7, 40), partition=0)  # nobody has seen these
    with pytest.raises(SourceAnswers):
        fail_over(flow.opened, DISASTER)
    gone = without_source(elsewhere(flow.opened, tmp_path))
    with pytest.raises(SourceGone):
        fail_over(gone, PLANNED)
    assert owners_now(flow.opened).frozen == {}
    left, moved, seconds = fail_over(gone, DISASTER)
    made = outcome_of(gone, DISASTER, left, moved, seconds)
    assert left == [] and [(each.verified_end, each.committed_end) for each in made.plan.partitions] == [(40, 40)]
    assert committed(west, group) == {(flow.remote_topic, 0): 20}
    assert committed(west, ahead) == {(flow.remote_topic, 0): 31}, "at the next record: a marker lies before it"
    base = tmp_path / "reports" / "failover"
    page, _ = write_document(shown_outcome(made), base)
    assert page == base.with_name("failover.html") and "east burns" in page.read_text()
    told = json.loads(base.with_name("failover.json").read_text())
    missing, names = told["sections"]["not_known_to_be_replicated"], told["sections"]["names"]
    assert [(each["topic"], each["from_offset"]) for each in missing] == [(flow.topic, 40)]
    assert names == [{"on_the_source": flow.topic, "on_the_target": flow.remote_topic}]
    with pytest.raises(FlowFrozen):  # the source is back, and its own deployment runs
        flow.run()
    assert {key: len(found) for key, found in read_all(west, flow.remote_topic).items()} == {0: 40}


@pytest.mark.parametrize(
    ("wrong", "first", "reason"),
    [
        ("another digest", 10, "are not as they were copied"),  # as if the target held something else
        ("no mapping record", 20, "offsets 20 to 29 are not accounted for: the mapping record before ends at 10"),
        ("a hold", 10, "held by ada: wait for the audit"),
    ],
)
def test_groups_stay_before_what_is_not_proven(
    east: Broker, west: Broker, tmp_path: Path, wrong: str, first: int, reason: str
) -> None:
    """Of three transactions something is wrong with the second: the first is proven, and groups go no further."""
    group = f"g-{uuid4().hex[:8]}"
    flow = with_groups(mirror(east, west, tmp_path, settings={"window.commit.bytes": "1"}), group)
    topics = prepare(flow.opened).topics
    for begin in (0, 10, 20):
        produce(east, flow.topic, numbered(10, begin), partition=0)
        run_window(
            flow.flow,
            flow.opened.ledger,
            topics,
            in_this_process,
            WindowOrder(f"w{begin}", slots=lambda _: 1, advance=begin == 0),
        )
    commit(east, group, {(flow.topic, 0): 30})
    do_task(flow.opened, CHECKPOINTS, "checkpoints")
    second = flow.opened.ledger.unverified()[0]
    if wrong == "a hold":
        add_holds(flow.opened, flow.topic, [0], reason="wait for the audit", by="ada")
    else:
        value = replace(second, digest=bytes(16)).encode_value() if wrong == "another digest" else None
        with Appender(flow.flow.target, mapping_topic(flow.flow.source.alias)) as appender:
            appender.append([(second.encode_key(), value)])
    gone = without_source(flow.opened)
    left, moved, seconds = fail_over(gone, DISASTER)
    assert [(each.first, each.last) for each in left] == [(first, 29)] and reason in left[0].reason, left
    assert flow.opened.ledger.verified()[flow.topic, 0].offset == 9
    assert committed(west, group) == {(flow.remote_topic, 0): 10}
    assert not outcome_of(gone, DISASTER, left, moved, seconds).is_good


def test_a_planned_failover_waits_for_exact_groups_unless_told_otherwise(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    group = f"g-{uuid4().hex[:8]}"
    flow = with_groups(mirror(east, west, tmp_path), group)
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 40})
    with pytest.raises(GroupsNotExact, match=rf"{group} in {flow.topic}-0 at 40: position beyond the log end"):
        fail_over(flow.opened, PLANNED)
    assert owners_now(flow.opened).frozen == {}
    left, moved, seconds = fail_over(flow.opened, replace(PLANNED, inexact=True))
    assert (
        WHOLE in owners_now(flow.opened).frozen and left == [] and [row.group for row in moved if row.reason] == [group]
    )
    assert not outcome_of(flow.opened, PLANNED, left, moved, seconds).is_good, "a group was left"
    commit(west, group, {(flow.remote_topic, 0): 27})
    with pytest.raises(CannotUndo, match=f"{group} in {flow.remote_topic}-0: it was left where it stood and has .* 27"):
        undo(flow.opened, PLANNED)


def test_a_source_that_answers_and_can_not_be_drained_is_left_anyway(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    flow = with_groups(mirror(east, west, tmp_path), "none")
    produce(east, flow.topic, numbered(10), partition=0)
    windowed(flow)
    with open_transaction(east, flow.topic, numbered(5), partition=0):
        with pytest.raises(SourceAnswers):
            fail_over(flow.opened, DISASTER)
        assert owners_now(flow.opened).frozen == {}
        left, _, _ = fail_over(flow.opened, replace(DISASTER, anyway=True))
    assert left == [] and WHOLE in owners_now(flow.opened).frozen


def test_checkpoints_that_are_further_than_the_ledger_count(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Those of another deployment, which has seen the group since."""
    group = f"g-{uuid4().hex[:8]}"
    flow = with_groups(mirror(east, west, tmp_path), group)
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 10})
    windowed(flow)
    old = without_source(flow.opened)
    assert [row.committed.offset for row in steps.positions(old, DISASTER)] == [10]
    commit(east, group, {(flow.topic, 0): 25})
    do_task(elsewhere(flow.opened, tmp_path), CHECKPOINTS, "checkpoints")
    assert [row.committed.offset for row in steps.positions(old, DISASTER)] == [25]


def test_groups_with_members_are_refused_and_moved_when_they_have_gone(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    group = f"g-{uuid4().hex[:8]}"
    flow = with_groups(mirror(east, west, tmp_path), group)
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 20})
    windowed(flow)
    gone = without_source(flow.opened)
    with member(west, group, flow.remote_topic), pytest.raises(GroupsActive, match=group):
        fail_over(gone, DISASTER)
    assert committed(west, group) == {} and WHOLE in owners_now(gone).frozen
    fail_over(gone, DISASTER)
    assert committed(west, group) == {(flow.remote_topic, 0): 20}


def test_a_failover_is_undone_while_nobody_has_gone_on(east: Broker, west: Broker, tmp_path: Path) -> None:
    group, new, synced = (f"{name}-{uuid4().hex[:8]}" for name in "gns")
    flow = with_groups(mirror(east, west, tmp_path), group, new, synced)
    produce(east, flow.topic, numbered(30), partition=0)
    for name in (group, new, synced):
        commit(east, name, {(flow.topic, 0): 20})
    windowed(flow)
    commit(west, group, {(flow.remote_topic, 0): 4})
    commit(west, synced, {(flow.remote_topic, 0): 20})  # where it is to be, as sync.group.offsets.enabled has it
    gone = without_source(flow.opened)
    fail_over(gone, DISASTER)
    fail_over(gone, DISASTER)  # from another Airflow: where groups stood at the first stays
    assert committed(west, group) == {(flow.remote_topic, 0): 20}
    for name in (group, synced):
        commit(west, name, {(flow.remote_topic, 0): 22})
        with pytest.raises(
            CannotUndo, match=f"{name} in {flow.remote_topic}-0: it was moved to 20 and has committed 22 since"
        ):
            undo(gone, FailoverOrder(reason="a false alarm", by="ada"))
        assert WHOLE in owners_now(gone).frozen
        commit(west, name, {(flow.remote_topic, 0): 20})
    assert {each.move.before for each in undo_plan(gone).groups} == {4, -1, 20}
    done = undo(gone, FailoverOrder(reason="a false alarm", by="ada"))
    assert "; 2 positions of groups went back" in done.headline and len(done.rows("groups")) == 2
    assert committed(west, group) == {(flow.remote_topic, 0): 4} and committed(west, new) == {}
    assert committed(west, synced) == {(flow.remote_topic, 0): 20}
    assert owners_now(gone).frozen == {} and gone.ledger.of_kind(GroupMove) == []
    produce(east, flow.topic, numbered(10, 30), partition=0)
    assert flow.run().is_verified and flow.assert_equal() == 40


def test_a_failover_is_undone_where_a_remote_topic_is_gone(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Nothing stands there any more, and no right lets a broker take a position there."""
    flow, group = with_a_group(east, west, tmp_path)
    gone = without_source(flow.opened)
    fail_over(gone, DISASTER)
    delete_topic(west, flow.remote_topic)
    undo(gone, FailoverOrder(reason="a false alarm", by="ada"))
    assert committed(west, group) == owners_now(gone).frozen == {} and gone.ledger.of_kind(GroupMove) == []


def test_a_failover_can_not_be_undone_once_others_have_written(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Unfrozen all the same, it leaves groups where they are: no later order takes them for moved."""
    topic, dlq = (create_topic(east, f"{name}-{uuid4().hex[:8]}", 1) for name in ("orders", "dlq"))
    group = a_group()
    flow = with_groups(mirror(east, west, tmp_path, topic=topic, settings={"topics": f"{topic}, {dlq}"}), group)
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 20})
    windowed(flow)
    gone = without_source(flow.opened)
    fail_over(gone, DISASTER)
    empty = flow.remote_topic.replace(topic, dlq)  # nothing was copied of it
    for remote, count in ((empty, 2), (flow.remote_topic, 3)):
        produce(west, remote, [Record(b"new")] * count, partition=0)
        with pytest.raises(CannotUndo, match=f"{remote}-0: {count} records were written there"):
            undo(gone, FailoverOrder(reason="a false alarm", by="ada"))
    assert WHOLE in owners_now(gone).frozen
    unfreeze(flow.opened, (), reason="by force", by="ada")
    assert flow.opened.ledger.of_kind(GroupMove) == [] and committed(west, group) == {(flow.remote_topic, 0): 20}
    produce(east, flow.topic, numbered(10, 30), partition=0)
    assert not flow.run().is_verified
    assert [each.value for each in read_all(west, flow.remote_topic)[0]][30:] == [b"new"] * 3, "written over by nobody"


def test_a_window_that_takes_the_lease_for_an_instant_holds_up_nothing(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deployment at a source that is cut off and lives on: it takes the lease, and only then finds the flow frozen."""
    group = f"g-{uuid4().hex[:8]}"
    flow = with_groups(mirror(east, west, tmp_path), group)
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 20})
    windowed(flow)
    gone = without_source(flow.opened)
    in_the_way = [FlowBusy(gone.flow.name, "theirs", "east:1", 0)]
    for name in ("verify_alone", "move_groups"):
        real = getattr(steps, name)

        def busy_once(*given: Any, real: Any = real, left: list[FlowBusy] = [*in_the_way]) -> Any:  # noqa: B006
            if left:
                raise left.pop()
            return real(*given)

        monkeypatch.setattr(steps, name, busy_once)
    fail_over(gone, DISASTER)
    assert committed(west, group) == {(flow.remote_topic, 0): 20}


@pytest.mark.long
def test_killed_at_each_step_and_run_again(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Each time by a ledger that has seen nothing, as another Airflow would; in the end as if nothing had happened."""
    flow, group = with_a_group(east, west, tmp_path)
    produce(east, flow.topic, numbered(10, 30), partition=0)
    topics = prepare(flow.opened).topics
    run_window(
        flow.flow, flow.opened.ledger, topics, in_this_process, WindowOrder("dies", slots=lambda _: 1, advance=False)
    )
    before = read_all(west, flow.remote_topic)[0]

    for module, name in (
        (freezing, "commit_change"),
        (alone, "_write"),
        (MappingWriter, "write"),
        (moving, "commit_offsets"),
    ):
        for after in (False, True):
            with killed_at(module, name, after=after):
                fail_over(without_source(elsewhere(flow.opened, tmp_path)), DISASTER)
            assert (WHOLE in owners_now(flow.opened).frozen) == (module is not freezing or after)
    first = owners_now(flow.opened).frozen[WHOLE]
    last = without_source(elsewhere(flow.opened, tmp_path))
    left, moved, _ = fail_over(last, DISASTER)
    assert left == [] and [(row.downstream, row.on_target, row.reason) for row in moved] == [(20, 20, "")]
    assert list(last.ledger.owners().records.values()) == [first], "frozen once"
    assert [each.before for each in last.ledger.of_kind(GroupMove)] == [4], "where it stood at the very first"
    assert last.ledger.verified()[flow.topic, 0].offset == 39
    undo(last, FailoverOrder(reason="a rehearsal", by="ada"))
    assert committed(west, group) == {(flow.remote_topic, 0): 4} and read_all(west, flow.remote_topic)[0] == before

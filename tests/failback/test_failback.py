"""Failing back: what diverged is told record by record, and what was never replicated is rescued, each record once."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from airmirror.clusters.admin.client import connect, topic_configs
from airmirror.clusters.protocol.transactions import TransactionalId
from airmirror.flows.freezing import freeze
from airmirror.naming import mapping_topic
from airmirror.report.canonical import canonical, parsed
from airmirror.report.page import page
from airmirror.runbooks.failback import plan as planning
from airmirror.runbooks.failback import rescue as rescuing
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.plan import FailbackPlan, SourceStillGone, failback_plan
from airmirror.runbooks.failback.rescue import ORIGIN, FlowNotFrozen, RescueTopicUnfit, rescue, to_rescue
from airmirror.runbooks.failback.shown import shown_plan
from airmirror.slot.errors import SlotFenced
from airmirror_local.brokers import Broker, start_broker
from support.failovers import DISASTER, at, elsewhere, fail_over, with_groups, without_source
from support.faults import before_a_commit
from support.flows import Mirror, mirror
from support.following import numbered
from support.killing import Killed
from support.topics import (
    Record,
    await_settled,
    create_topic,
    delete_topic,
    end_offsets,
    open_transaction,
    produce,
    read_all,
    set_config,
)

ORDER = FailbackOrder(reason="INC-7", by="ada")


@pytest.fixture(autouse=True)
def one_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are made at one moment: topics of rescued records have the same date also where a test runs over midnight."""
    now = time.time()
    monkeypatch.setattr(planning, "time", SimpleNamespace(time=lambda: now))


def failed_over(flow: Mirror, count: int = 40) -> Mirror:
    """The flow after a disaster, of which ``count`` records had been replicated."""
    produce(flow.source, flow.topic, numbered(count))
    assert flow.run().is_verified
    fail_over(without_source(flow.opened), DISASTER)
    return flow


def values(records: Iterable[Record]) -> set[bytes | None]:
    return {each.value for each in records}


def listed(flow: Mirror, plan: FailbackPlan) -> set[bytes | None]:
    """The values of the records that a plan says were never replicated nor rescued."""
    there = read_all(flow.source, flow.topic)
    return {value for row in plan.partitions for value in at(there, row.partition, row.never.runs)}


def rescued_topic(flow: Mirror, plan: FailbackPlan) -> str:
    return f"{flow.remote_topic}.rescued.{datetime.fromtimestamp(plan.made_ms / 1000, UTC):%Y-%m-%d}"


def levels(plan: FailbackPlan) -> dict[str, str]:
    return {finding.what: finding.level for finding in plan.findings}


def test_writers_on_both_sides_are_told_record_by_record(east: Broker, west: Broker, tmp_path: Path) -> None:
    """A source that was cut off and lives on: transactions, aborted ones too, lie between what was written on either side."""
    flow = failed_over(with_groups(mirror(east, west, tmp_path, partitions=2), "none"))
    with pytest.raises(SourceStillGone):
        failback_plan(without_source(flow.opened))
    produce(east, flow.topic, numbered(20, 40))
    produce(east, flow.topic, numbered(6, 900), transactional="abort")
    produce(east, flow.topic, numbered(10, 60), transactional="commit")
    produce(west, flow.remote_topic, numbered(30, 1000))
    produce(west, flow.remote_topic, numbered(5, 1030), transactional="commit")
    set_config(east, flow.topic, "retention.ms", "86400000")
    await_settled(east, flow.topic)
    await_settled(west, flow.remote_topic)
    ends = [end_offsets(west, name) for name in (flow.remote_topic, mapping_topic(flow.flow.source.alias))]
    plan = failback_plan(elsewhere(flow.opened, tmp_path))
    assert ends == [end_offsets(west, name) for name in (flow.remote_topic, mapping_topic(flow.flow.source.alias))]
    there, here = read_all(east, flow.topic), read_all(west, flow.remote_topic)
    assert (plan.never, plan.since, plan.rescued) == (30, 35, 0) and not any(each.is_equal for each in plan.partitions)
    for row in plan.partitions:
        new = [each.value for each in there[row.partition] if int((each.value or b"v0")[1:]) >= 40]
        assert at(there, row.partition, row.never.runs) == new and row.never.records == len(new)
        since = [each.value for each in here[row.partition] if int((each.value or b"v0")[1:]) >= 1000]
        assert at(here, row.partition, row.since.runs) == since and row.since.records == len(since)
        assert not row.lost and not row.problem
        assert row.never.earliest_ms == min(e.timestamp for e in there[row.partition] if e.value in new)
    found = levels(plan)
    assert found["all records of the source are replicated or rescued"] == "stop"
    assert (
        found["no application has written on the target since"]
        == found["topics, configs and ACLs are as on the source"]
        == "warn"
    )
    assert [each.what for each in plan.drift if each.will_change] == ["retention.ms"]
    assert found["the flow is frozen"] == found["the source's logs are those that were copied"] == "ok"
    told = parsed(canonical(shown_plan(plan).as_dict() | {"signer": None}))
    assert {"name": "records not replicated", "value": 30} in told["numbers"]
    assert told["sections"]["freeze"][0]["by"] == "ada"
    text = page(told)
    assert "30 records of the source not replicated" in text and "<script" not in text and flow.remote_topic in text


def test_what_an_open_transaction_keeps_back_is_told(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = failed_over(with_groups(mirror(east, west, tmp_path), "none"))
    produce(east, flow.topic, numbered(3, 40))
    with open_transaction(east, flow.topic, numbered(2, 50)):
        produce(east, flow.topic, numbered(4, 60))
        (row,) = failback_plan(flow.opened).partitions
        assert (row.never.records, row.open_from) == (3, row.end) and not row.is_equal
        assert levels(failback_plan(flow.opened))["all of the source can be read"] == "stop"
    read_all(east, flow.topic)  # which waits until the marker is written
    assert failback_plan(flow.opened).never == 7


def test_a_source_that_was_made_anew_has_nothing_of_what_was_replicated(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    flow = failed_over(with_groups(mirror(east, west, tmp_path), "none"))
    delete_topic(east, flow.topic)
    gone = failback_plan(flow.opened)
    assert [(each.lost, each.kept_end, each.problem) for each in gone.partitions] == [
        (40, -1, "the source has no such partition any more")
    ]
    create_topic(east, flow.topic)
    produce(east, flow.topic, numbered(7, 100))
    plan = failback_plan(flow.opened)
    (row,) = plan.partitions
    assert (row.lost, row.never.records, row.never.runs) == (40, 7, ((0, 6),)) and "created again" in row.problem
    assert levels(plan)["the source's logs are those that were copied"] == "warn"
    chosen, after = rescue(flow.opened, ORDER)
    assert len(chosen) == 1 and (after.never, after.rescued) == (0, 7)


def test_each_acknowledged_record_is_in_exactly_one_place(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rescue is killed twice, just before and just after a commit, and run again by others: nothing comes twice, or is left."""
    flow = failed_over(with_groups(mirror(east, west, tmp_path, partitions=2), "none"))
    produce(east, flow.topic, numbered(60, 40))
    produce(east, flow.topic, numbered(9, 900), transactional="abort")
    produce(east, flow.topic, [replace(each, timestamp=1_600_000_000_000) for each in numbered(20, 100)])
    everything = values(record for its in read_all(east, flow.topic).values() for record in its)
    assert len(everything) == 120
    dry = failback_plan(flow.opened)
    name = rescued_topic(flow, dry)
    assert {each.into for each in to_rescue(dry, ORDER)} == {name} and dry.never == 80
    monkeypatch.setattr(rescuing, "BATCH_BYTES", 2500)

    def dies(*, after: bool) -> None:
        end, commits = TransactionalId.end, list[int]()

        def die(self: TransactionalId, commit: bool) -> None:
            commits.append(1)
            if len(commits) < 3:
                return end(self, commit)
            if after:
                end(self, commit)
            raise Killed

        with monkeypatch.context() as patched, pytest.raises(Killed):
            patched.setattr(TransactionalId, "end", die)
            rescue(elsewhere(flow.opened, tmp_path), ORDER)

    def places(*, settled: bool = True) -> list[set[bytes | None]]:
        """On the target, on the list, rescued: no record is in two of them, or in none. A commit that was acknowledged is seen a
        moment later; one that was not leaves its transaction open (``settled``)."""
        aside = [each for its in read_all(west, name, settled=settled).values() for each in its]
        assert len(values(aside)) == len(aside), "rescued once"
        replicated = values(record for its in read_all(west, flow.remote_topic).values() for record in its)
        found = [replicated, listed(flow, failback_plan(elsewhere(flow.opened, tmp_path))), values(aside)]
        assert sum(map(len, found)) == len(everything) and set.union(*found) == everything
        return found

    dies(after=False)
    before = [len(its) for its in places(settled=False)]
    dies(after=True)
    assert all(before) and [len(its) for its in places()][2] > before[2]
    last = elsewhere(flow.opened, tmp_path)
    _, plan = rescue(last, ORDER)
    assert [len(its) for its in places()] == [40, 0, 80] and (plan.never, plan.rescued) == (0, 80)
    ends = end_offsets(west, name)
    assert rescue(flow.opened, ORDER)[0] == [] and end_offsets(west, name) == ends, "nothing is left"
    there = {partition: {each.offset: each for each in its} for partition, its in read_all(east, flow.topic).items()}
    for partition, its in read_all(west, name).items():
        origins = [{k.removeprefix(ORIGIN): v for k, v in each.headers if k.startswith(ORIGIN)} for each in its]
        offsets = [int(origin["offset"] or b"") for origin in origins]
        assert offsets == sorted(offsets), "in order"
        for each, origin, offset in zip(its, origins, offsets, strict=True):
            original = there[partition][offset]
            own = tuple(header for header in each.headers if not header[0].startswith(ORIGIN))
            assert (each.key, each.value, own, each.timestamp) == original.content
            assert origin == {
                "cluster": flow.flow.source.alias.encode(),
                "topic": flow.topic.encode(),
                "partition": b"%d" % partition,
                "offset": b"%d" % offset,
                "timestamp": b"%d" % original.timestamp,
            }


def test_of_two_rescues_at_once_one_ends_as_fenced(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = failed_over(with_groups(mirror(east, west, tmp_path), "none"))
    produce(east, flow.topic, numbered(60, 40))
    monkeypatch.setattr(rescuing, "BATCH_BYTES", 2500)
    end, commits = TransactionalId.end, list[int]()

    def interrupted(self: TransactionalId, commit: bool) -> None:
        end(self, commit)
        commits.append(1)
        if len(commits) == 1:
            rescue(elsewhere(flow.opened, tmp_path), ORDER)

    monkeypatch.setattr(TransactionalId, "end", interrupted)
    with pytest.raises(SlotFenced):
        rescue(flow.opened, ORDER)
    plan = failback_plan(flow.opened)
    assert (plan.never, plan.rescued) == (0, 60)
    assert [each.value for each in read_all(west, rescued_topic(flow, plan))[0]] == [
        b"v%d" % number for number in range(40, 100)
    ]


def test_a_rescue_that_is_fenced_without_a_lease_writes_each_record_once(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = failed_over(with_groups(mirror(east, west, tmp_path), "none"))
    produce(east, flow.topic, numbered(20, 40))

    before_a_commit(monkeypatch)
    _, plan = rescue(flow.opened, ORDER)
    assert (plan.never, plan.rescued) == (0, 20)
    assert [each.value for each in read_all(west, rescued_topic(flow, plan))[0]] == [
        b"v%d" % number for number in range(40, 60)
    ]


def test_a_rescue_is_for_frozen_flows_and_continues_after_the_last_one(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    """Aside: the remote topic stays as it is, and what others wrote there counts as theirs."""
    flow = with_groups(mirror(east, west, tmp_path), "none")
    produce(east, flow.topic, numbered(10), partition=0)
    assert flow.run().is_verified
    with pytest.raises(FlowNotFrozen):
        rescue(flow.opened, ORDER)
    freeze(flow.opened, (), reason="INC-7", by="ada")
    produce(east, flow.topic, numbered(5, 10), partition=0)
    produce(west, flow.remote_topic, numbered(3, 100), partition=0)
    _, plan = rescue(flow.opened, ORDER)
    assert (plan.never, plan.rescued, plan.since) == (0, 5, 3)
    produce(east, flow.topic, numbered(2, 15), partition=0)  # its producers continue
    _, plan = rescue(elsewhere(flow.opened, tmp_path), ORDER)
    assert (plan.never, plan.rescued, plan.since) == (0, 7, 3)
    aside = [each.value for each in read_all(west, rescued_topic(flow, plan))[0]]
    assert aside == [b"v%d" % number for number in range(10, 17)]
    assert len(read_all(west, flow.remote_topic)[0]) == 13


def test_of_two_topics_one_is_rescued_and_kept_for_ever(east: Broker, west: Broker, tmp_path: Path) -> None:
    other = create_topic(east, f"other-{uuid4().hex[:8]}", 1)
    chosen = create_topic(east, f"chosen-{uuid4().hex[:8]}", 1)
    flow = mirror(east, west, tmp_path, topic=chosen, settings={"topics": f"{other}, {chosen}"})
    flow = with_groups(flow, "none")
    for topic in (other, chosen):
        produce(east, topic, numbered(10), partition=0)
    assert flow.run().is_verified
    freeze(flow.opened, (), reason="INC-7", by="ada")
    for topic in (other, chosen):
        produce(east, topic, numbered(3, 10), partition=0)
    copied, plan = rescue(flow.opened, replace(ORDER, topics=(chosen,)))
    assert [each.row.topic for each in copied] == [chosen] and (plan.never, plan.rescued) == (3, 3)
    into = rescued_topic(flow, plan)
    configs = topic_configs(connect(flow.flow.target), [into])[into]
    kept = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
    assert {key: (configs[key].value, configs[key].is_own) for key in kept} == {
        key: (value, True) for key, value in kept.items()
    }


def test_a_topic_of_rescued_records_that_is_too_small_is_refused(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = failed_over(with_groups(mirror(east, west, tmp_path, partitions=2), "none"))
    produce(east, flow.topic, numbered(3, 40))
    create_topic(west, rescued_topic(flow, failback_plan(flow.opened)), 1)
    with pytest.raises(RescueTopicUnfit, match="has 1 partitions, and 2 are needed"):
        rescue(flow.opened, ORDER)


@pytest.mark.long
def test_a_source_that_comes_back_with_a_part_of_its_data(
    west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One partition has lost its log and is written to again at offsets that had been replicated, the other one is whole."""
    source = start_broker(tmp_path, "source")
    try:
        flow = with_groups(mirror(source, west, tmp_path, partitions=2), "none")
        for partition in (0, 1):
            produce(source, flow.topic, numbered(40, 1000 * partition), partition=partition)
        assert flow.run().is_verified
        source.kill()
        fail_over(flow.opened, DISASTER)
        (log,) = source.directory.rglob(f"{flow.topic}-1")
        shutil.rmtree(log)
        source.restart()
        empty = failback_plan(flow.opened)
        assert [(each.kept_end, each.lost, each.never.records) for each in empty.partitions] == [(40, 0, 0), (0, 40, 0)]
        for partition in (0, 1):
            produce(source, flow.topic, numbered(60, 5000 + 1000 * partition), partition=partition)
        plan = failback_plan(flow.opened)
        there = read_all(source, flow.topic)
        assert [(each.kept_end, each.lost, each.never.records) for each in plan.partitions] == [
            (40, 0, 60),
            (0, 40, 60),
        ]
        for row in plan.partitions:
            expected = [b"v%d" % number for number in range(5000 + 1000 * row.partition, 5060 + 1000 * row.partition)]
            assert at(there, row.partition, row.never.runs) == expected
        assert "was cut at offset 0" in plan.partitions[1].problem
        _, after = rescue(flow.opened, ORDER)
        assert (after.never, after.rescued) == (0, 120)
        aside: Any = read_all(west, rescued_topic(flow, after))
        assert {number: len(its) for number, its in aside.items()} == {0: 60, 1: 60}
    finally:
        source.kill()

"""A failover rehearsed: what would go wrong is told, and nothing of production is touched."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import TopicPartition as Place

from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.protocol.routes import Routes
from airmirror.flows.freezing import freeze
from airmirror.flows.prepare import Opened, prepare
from airmirror.naming import mapping_topic
from airmirror.partitions import TopicPartition
from airmirror.report.files import write_document
from airmirror.runbooks.failover.plan import failover_plan
from airmirror.runbooks.rehearsal import positions
from airmirror.runbooks.rehearsal import rehearse as rehearsing
from airmirror.runbooks.rehearsal.rehearse import FailoverRehearsal, RehearsalNeedsSource, rehearse, shown
from airmirror.windows.errors import FlowFrozen
from airmirror.windows.window import WindowOrder, run_window
from airmirror.wire.mappings import MappedRange
from airmirror_local.brokers import Broker
from support.failovers import windowed, with_groups, without_source
from support.flows import Mirror, in_this_process, mirror
from support.following import numbered
from support.groups import commit
from support.snapshots import snapshot
from support.topics import SECONDS, Record, admin, produce


def filled(east: Broker, west: Broker, directory: Path, **more: Any) -> tuple[Mirror, str]:
    """A flow with a group, 40 records verified, and its source."""
    group = f"g-{uuid4().hex[:8]}"
    flow = with_groups(mirror(east, west, directory, **more), group)
    produce(east, flow.topic, numbered(40), partition=0)
    windowed(flow)
    return flow, group


def everything(flow: Mirror, *groups: str) -> list[dict[str, Any]]:
    """What the flow and its groups have on either side."""
    return [snapshot(each, flow.flow.source.alias, *groups) for each in (flow.source, flow.target)]


def rehearsed(flow: Mirror) -> FailoverRehearsal:
    return rehearse(flow.opened)


def test_everything_is_proven_and_nothing_of_production_is_touched(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Groups in the middle, on a marker, at the end, and past what is verified; an empty partition; headers and no keys."""
    middle, marker, end, past = (f"{name}-{uuid4().hex[:8]}" for name in ("middle", "marker", "end", "past"))
    flow = with_groups(mirror(east, west, tmp_path, partitions=3), middle, marker, end, past)
    produce(east, flow.topic, numbered(20), partition=0)
    produce(east, flow.topic, numbered(3, 900), partition=0, transactional="abort")
    produce(east, flow.topic, [Record(None, b"k"), Record(b"v", None, (("h", b"1"), ("h", None)))], partition=0)
    produce(east, flow.topic, numbered(150, 1000), partition=1, transactional="commit")
    windowed(flow)
    commit(east, middle, {(flow.topic, 0): 7, (flow.topic, 1): 100})
    commit(east, marker, {(flow.topic, 0): 21, (flow.topic, 1): 150})
    commit(east, end, {(flow.topic, 0): 26, (flow.topic, 2): 0})
    produce(east, flow.topic, numbered(10, 40), partition=0)
    topics = prepare(flow.opened).topics
    run_window(
        flow.flow, flow.opened.ledger, topics, in_this_process, WindowOrder("w", slots=lambda _: 1, advance=False)
    )
    produce(east, flow.topic, numbered(5, 50), partition=0)  # which no window has seen
    commit(east, past, {(flow.topic, 0): 38})
    commit(west, middle, {(flow.remote_topic, 0): 3})
    groups = middle, marker, end, past
    before = everything(flow, *groups)
    assert [bool(each["topics"] and each["groups"]) for each in before] == [True, True]
    report = rehearsed(flow)
    assert everything(flow, *groups) == before
    assert report.is_good, report.problems
    assert report.records == 172 and "0 of 172 records missing, 4 of 4 groups exact" in report.headline
    points = [each.point for each in report.proofs]
    proofs = {(each.group, each.partition): (each.translation, each.again) for each in points}
    assert proofs[middle, 0] == (7, 0) and proofs[middle, 1] == (100, 0) and proofs[past, 0][1] == 12
    assert 0 < report.seconds < sum(step.seconds for step in report.steps)
    assert all(step.name in report.holds for step in report.steps if step.is_failover)
    assert "the positions of groups" in report.holds and f"fences {report.slots} transactional id" in report.holds
    base = tmp_path / "reports" / "rehearsal"
    page, _ = write_document(shown(report), base)
    text = page.read_text()
    told = json.loads(base.with_name("rehearsal.json").read_text())
    assert told["is_good"] and told["headline"] == report.headline and told["asked"]["seconds_are_of"] == report.holds
    assert {"name": "records compared and equal", "value": 172} in told["numbers"]
    assert page.name == "rehearsal.html" and middle in text and "<script" not in text


def test_a_position_that_is_not_at_the_very_record_fails(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, group = filled(east, west, tmp_path)
    commit(east, group, {(flow.topic, 0): 25})

    def one_further(opened: Opened) -> Any:
        plan = failover_plan(opened)
        return replace(plan, groups=tuple(replace(each, translation=26) for each in plan.groups))

    monkeypatch.setattr(rehearsing, "failover_plan", one_further)
    report = rehearsed(flow)
    assert report.problems == (
        f"group {group} in {flow.topic}-0 at 25: it would read the record at offset 25 next, and the record at offset 26 "
        "on the target, which is not the same record",
    )
    assert "0 of 1 group exact. The rehearsal has failed: 1 problem." in report.headline


def test_what_the_target_has_lost_under_a_group_fails(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Its retention, or a person, has deleted what the group would read next: nobody resumes from there unnoticed."""
    flow, group = filled(east, west, tmp_path)
    commit(east, group, {(flow.topic, 0): 10})
    assert rehearsed(flow).is_good
    asked = admin(west).delete_records([Place(flow.remote_topic, 0, 15)])
    next(iter(asked.values())).result(SECONDS)
    report = rehearsed(flow)
    assert len(report.problems) == 2 and all("translated below the log start" in each for each in report.problems)
    assert [each.expired for each in report.compared] == [15], "what retention takes is no loss of the flow's"


def test_a_group_that_has_lost_its_place_on_the_source_is_no_problem(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    """Groups that nobody uses any more stay for days below what retention has left."""
    flow, group = filled(east, west, tmp_path)
    commit(east, group, {(flow.topic, 0): 10})
    asked = admin(east).delete_records([Place(flow.topic, 0, 15)])
    next(iter(asked.values())).result(SECONDS)
    assert rehearsed(flow).is_good


@pytest.mark.parametrize(("policy", "wrong"), [("compact", 0), ("delete", 1)])
def test_what_a_cleaner_has_taken_on_one_side_is_no_problem(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, wrong: int
) -> None:
    """As if the source had lost offsets 7 and 8: of a compacted topic these were superseded, of another one they are lost."""
    flow, group = filled(east, west, tmp_path, config={"cleanup.policy": policy})
    commit(east, group, {(flow.topic, 0): 7})
    real = positions.next_record

    def cleaned(
        routes: Routes, key: TopicPartition, start: int, end: int, *, is_committed: bool
    ) -> positions.Next | None:
        is_source = key.topic == flow.topic
        return real(routes, key, 9 if is_source else start, end, is_committed=is_committed)

    monkeypatch.setattr(positions, "next_record", cleaned)
    assert len(rehearsed(flow).problems) == wrong

    def altered(*given: Any, **named: Any) -> positions.Next | None:
        found = real(*given, **named)
        return found if found is None or given[1].topic == flow.topic else replace(found, body=b"other")

    monkeypatch.setattr(positions, "next_record", altered)
    assert "which is not the same record" in rehearsed(flow).problems[0], "of one place they must be equal"


def test_records_that_are_not_whole_fail(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = filled(east, west, tmp_path)
    last = flow.opened.ledger.last_mappings()[flow.topic, 0]
    fewer = replace(last, ranges=(MappedRange(0, 0, 39),), copied=39, control=last.control + 1)
    with Appender(flow.flow.target, mapping_topic(flow.flow.source.alias)) as appender:
        appender.append([(fewer.encode_key(), fewer.encode_value())])
    report = rehearsed(flow)
    assert "the source holds more records in it than were copied" in "\n".join(report.problems)
    assert "1 partition not whole" in report.headline and not report.is_good


def test_only_the_newest_records_are_compared(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = filled(east, west, tmp_path, settings={"failover.rehearsal.records": "15"})
    report = rehearsed(flow)
    assert report.is_good and report.records == 15


def test_nothing_is_rehearsed_of_a_flow_that_is_frozen_or_whose_source_is_gone(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    flow, _ = filled(east, west, tmp_path)
    with pytest.raises(RehearsalNeedsSource):
        rehearse(without_source(flow.opened))
    freeze(flow.opened, (), reason="INC-7", by="ada")
    with pytest.raises(FlowFrozen):
        rehearse(flow.opened)
    empty = mirror(east, west, tmp_path)
    report = rehearsed(empty)
    assert not report.is_good and "nothing yet" in report.problems[0]

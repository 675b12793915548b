"""A migration rehearsed: what would go wrong is told, the newest records are compared, and nothing of production is touched."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from airmirror.clusters.admin.appender import Appender
from airmirror.naming import mapping_topic
from airmirror.report.files import write_document
from airmirror.runbooks.migration import rehearsal as rehearsing
from airmirror.runbooks.migration.rehearsal import MoveGroupMoved, MoveRehearsal, rehearse_move, shown
from airmirror.runbooks.rehearsal.rehearse import RehearsalNeedsSource
from airmirror.wire.mappings import MappedRange
from airmirror_local.brokers import Broker
from support.acls import denied, every_acl
from support.failovers import without_source
from support.following import numbered
from support.groups import a_group, commit, committed
from support.migrations import IDENTITY, mirrored, moving, takes
from support.snapshots import snapshot
from support.topics import Record, await_settled, open_transaction, produce


def everything(cluster: Broker, *own: str) -> dict[str, Any]:
    """All that the test has on a cluster, with the cluster's ACLs."""
    return snapshot(cluster, *own, alone=True) | {"acls": every_acl(cluster)}


def rehearsed(opened: Any) -> MoveRehearsal:
    return rehearse_move(opened, "shop")


@pytest.mark.parametrize("policy", ["", pytest.param(IDENTITY, marks=pytest.mark.long)])
def test_everything_is_proven_and_nothing_of_production_is_touched(
    guarded: list[Broker], tmp_path: Path, policy: str
) -> None:
    """With ACLs, configs, transactions, an empty partition, and groups in the middle, on a marker, and before what is copied."""
    east, west = guarded
    settings = {"replication_policy_class": policy} if policy else {}
    flow, stays = moving(east, west, tmp_path, partitions=3, move_rehearsal_records="60", **settings)
    middle, marker, old = a_group(), a_group(), a_group()
    own = flow.flow.source.alias, flow.topic, stays, middle, marker, old
    remote = flow.topic if policy else flow.remote_topic
    produce(east, flow.topic, numbered(40), partition=0, transactional="commit")
    produce(east, flow.topic, numbered(3, 900), partition=0, transactional="abort")
    produce(east, flow.topic, [Record(None, b"k"), Record(b"v", None, (("h", b"1"), ("h", None)))], partition=0)
    produce(east, flow.topic, numbered(150, 1000), partition=1)
    commit(east, middle, {(flow.topic, 0): 25, (flow.topic, 1): 120})
    commit(east, marker, {(flow.topic, 0): 40, (flow.topic, 2): 0})
    commit(east, old, {(flow.topic, 1): 3})
    await_settled(east, flow.topic)
    takes(flow.opened, "mirror")
    commit(west, middle, {(remote, 0): 7})
    before = everything(east, *own), everything(west, *own)
    assert all(each["topics"].keys() > {flow.topic if each is before[0] else remote} for each in before)
    report = rehearsed(flow.opened)
    assert (everything(east, *own), everything(west, *own)) == before
    assert report.is_good, report.problems
    assert "102 records equal on both sides, 3 of 3 groups exact" in report.headline, report.headline
    there = {(each.point.group, each.point.partition): each.point.translation for each in report.proofs}
    assert there[middle, 1] == 120 and there[old, 1] == 3
    base = tmp_path / "reports" / "rehearsal"
    page, _ = write_document(shown(report), base)
    text = page.read_text()
    assert json.loads(base.with_name("rehearsal.json").read_text())["headline"] == report.headline
    assert page.name == "rehearsal.html" and middle in text and "<script" not in text


@pytest.mark.long  # a further case: what is rehearsed is what is verified
def test_it_is_rehearsed_while_producers_and_windows_are_at_work(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, group = mirrored(east, west, tmp_path)
    with open_transaction(east, flow.topic, numbered(5, 30), partition=0):
        assert rehearsed(flow.opened).is_good
    produce(east, flow.topic, numbered(5, 40), partition=0)
    report = rehearsed(flow.opened)
    assert report.is_good and sum(each.equal for each in report.compared) == 30, "what is verified"
    assert committed(west, group) == {} and committed(east, group) == {(flow.topic, 0): 20}
    assert flow.run().is_verified and flow.assert_equal() == 35
    report = rehearsed(flow.opened)
    assert report.is_good and sum(each.equal for each in report.compared) == 35, report.problems


def test_a_record_that_was_not_copied_fails(east: Broker, west: Broker, tmp_path: Path) -> None:
    """As if a window had overlooked one: its account says that it was none."""
    flow, _ = moving(east, west, tmp_path)
    produce(east, flow.topic, numbered(30), partition=0)
    takes(flow.opened, "mirror")
    last = flow.opened.ledger.last_mappings()[flow.topic, 0]
    fewer = replace(last, ranges=(MappedRange(0, 0, 29),), copied=29, control=last.control + 1)
    with Appender(flow.flow.target, mapping_topic(flow.flow.source.alias)) as appender:
        appender.append([(fewer.encode_key(), fewer.encode_value())])
    report = rehearsed(flow.opened)
    assert "the source holds more records in it than were copied" in "\n".join(report.problems)
    assert "The rehearsal has failed: 1 problem." in report.headline


def test_a_group_that_is_one_off_fails(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, group = mirrored(east, west, tmp_path)
    real = rehearsing.points_of

    def one_further(*given: Any) -> Any:
        return [replace(each, translation=21) for each in real(*given)]

    monkeypatch.setattr(rehearsing, "points_of", one_further)
    report = rehearsed(flow.opened)
    (problem,) = report.problems
    assert problem.startswith(f"group {group} in {flow.topic}-0 at 20: it would read the record at offset 20 next")
    assert "0 of 1 group exact" in report.headline


def test_a_group_whose_position_may_not_be_written_fails(guarded: list[Broker], tmp_path: Path) -> None:
    """Asked of the target, for a group that is not there yet; nothing is written to find out."""
    east, west = guarded
    flow, group = mirrored(east, west, tmp_path)
    assert rehearsed(flow.opened).is_good
    with denied(west, ResourceType.GROUP, group, AclOperation.READ):
        (problem,) = rehearsed(flow.opened).problems
    assert problem.startswith(f"group {group} in {flow.topic}-0 at 20: ") and "needs READ on the group" in problem
    assert committed(west, group) == {}


def test_a_group_that_could_not_be_cut_over_fails(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, group = mirrored(east, west, tmp_path)
    commit(west, group, {(flow.remote_topic, 0): 25})
    assert any("ahead on the target already" in each for each in rehearsed(flow.opened).problems)
    assert committed(west, group) == {(flow.remote_topic, 0): 25}


def test_nothing_is_rehearsed_of_what_has_moved_or_can_not_be_reached(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    flow, _ = moving(east, west, tmp_path)
    produce(east, flow.topic, numbered(10), partition=0)
    nothing = rehearsed(flow.opened)
    assert any(f"{flow.remote_topic} is not there yet" in each for each in nothing.problems)
    with pytest.raises(RehearsalNeedsSource):
        rehearse_move(without_source(flow.opened), "shop")
    takes(flow.opened, "mirror", "cut_over_producers")
    with pytest.raises(MoveGroupMoved, match="'shop' has moved"):
        rehearse_move(flow.opened, "shop")
    assert isinstance(nothing, MoveRehearsal)

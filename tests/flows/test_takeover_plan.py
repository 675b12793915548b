"""What a take-over would find: said while MirrorMaker 2 still runs, and nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.admin.creation import ensure_topic
from airmirror.flows.prepare import dry_run
from airmirror.offsets.syncs import place_of_syncs
from airmirror.offsets.writing import COMPACTED
from airmirror.partitions import TopicPartition
from airmirror.runbooks.takeover.plan import takeover_plan
from airmirror.runbooks.takeover.shown import shown_plan
from airmirror.topics.sync import apply, look
from airmirror.windows.takeover import TailDiffers
from airmirror.wire.mirrormaker import OffsetSync, source_offset_key, source_offset_value
from airmirror_local.brokers import Broker
from support.flows import Mirror, as_mirrormaker, mirror
from support.groups import commit
from support.hostile import delete_records
from support.mirrormaker import numbered
from support.topics import Record, await_settled, create_topic, delete_topic, end_offsets, produce, read_all


def write_syncs(flow: Mirror, syncs: Sequence[tuple[int, int]]) -> None:
    """As MirrorMaker 2 does."""
    cluster, topic = place_of_syncs(flow.flow)
    ensure_topic(cluster, topic, 1, COMPACTED, "")
    made = [OffsetSync(flow.topic, 0, *sync) for sync in syncs]
    with Appender(cluster, topic) as appender:
        appender.append([(sync.encode_key(), sync.encode_value()) for sync in made])


def copied(flow: Mirror, ranges: Sequence[tuple[int, int]]) -> None:
    source = read_all(flow.source, flow.topic)[0]
    for first, end in ranges:
        produce(flow.target, flow.remote_topic, source[first:end], partition=0)


def whats(flow: Mirror) -> list[tuple[str, bool]]:
    found = takeover_plan(flow.opened).histories
    return [(each.what, each.is_loss) for each in found.get(TopicPartition(flow.topic, 0), ())]


def test_a_plan_says_where_it_would_continue_and_which_groups_are_exact(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(100))
    as_mirrormaker(flow, 70, 59)
    write_syncs(flow, [(0, 0), (50, 50)])
    old, new = topic("old"), topic("new")
    commit(east, old, {(flow.topic, 0): 30})
    commit(east, new, {(flow.topic, 0): 65})
    before = end_offsets(west, flow.remote_topic)
    found = takeover_plan(flow.opened)
    [row] = found.partitions
    assert (row.recorded, row.since, row.start, row.end, row.copied, row.error) == (59, 60, 70, 100, 10, None)
    groups = {each.group: each.why for each in found.groups}
    assert groups[new] == ""
    assert groups[old] == "copied by MirrorMaker 2, before offset 60: estimated by its offset syncs"
    assert found.running == () and not found.histories and shown_plan(found).is_good
    assert found.syncs[TopicPartition(flow.topic, 0)].source == 50
    told = json.loads(json.dumps(shown_plan(found).as_dict()))["sections"]
    assert found.progress_ms is not None and told["partitions"][0]["continues_at"] == 70
    assert end_offsets(west, flow.remote_topic) == before and not flow.opened.ledger.last_mappings()


def test_a_plan_before_anything_of_the_flow_is_there(east: Broker, west: Broker, tmp_path: Path) -> None:
    """MirrorMaker 2 has made the remote topic, and the topic of its progress; the flow's own are still to come."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(100))
    delete_records(east, flow.topic, 10)
    apply(flow.flow, look(flow.flow))
    produce(west, flow.remote_topic, [*numbered(5, 5000), *read_all(east, flow.topic)[0][:60]], partition=0)
    alias = flow.flow.source.alias
    progress = create_topic(west, f"mm2-offsets.{alias}.internal", 25, {"cleanup.policy": "compact"})
    produce(west, progress, [Record(source_offset_value(59), source_offset_key(alias, flow.topic, 0))], partition=3)
    [row] = takeover_plan(flow.opened).partitions
    assert (row.recorded, row.since, row.start, row.copied, row.error) == (59, 60, 70, 10, None)
    _, [planned] = dry_run(flow.opened)
    assert planned.start == 60


def test_what_it_skipped_and_what_it_copied_twice_is_told(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(200))
    as_mirrormaker(flow, 50, 199)
    copied(flow, [(30, 90), (100, 200)])
    write_syncs(flow, [(0, 0), (30, 50), (100, 110)])
    assert whats(flow) == [
        ("about 20 records were copied twice: it began again at or before source offset 30", False),
        ("10 records between source offsets 30 and 99 were not copied", True),
    ]
    assert not shown_plan(takeover_plan(flow.opened)).is_good
    delete_records(east, flow.topic, 150)
    deleted = "the source has deleted them: control records, or records that MirrorMaker 2 never copied"
    assert whats(flow) == [
        (f"10 offsets between source offsets 30 and 99 are not on the target, and {deleted}", True),
    ]


def test_one_that_was_killed_in_its_first_minute_began_again_at_the_beginning(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(100))
    as_mirrormaker(flow, 50, 99)
    copied(flow, [(0, 100)])
    write_syncs(flow, [(0, 0), (0, 50)])
    assert whats(flow) == [
        ("about 50 records were copied twice: it began again at or before source offset 0", False),
    ]


def test_control_records_are_no_gap(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    for number in range(3):
        produce(east, flow.topic, numbered(10, 10 * number), transactional="commit")
        await_settled(east, flow.topic)  # its marker comes before the next records
    as_mirrormaker(flow, 30, 31)
    write_syncs(flow, [(0, 0), (11, 10), (22, 20)])
    found = takeover_plan(flow.opened)
    assert not found.histories and shown_plan(found).is_good and found.partitions[0].start == 32


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_what_a_cleaner_may_have_taken_tells_nothing(east: Broker, west: Broker, tmp_path: Path, policy: str) -> None:
    """At offset 10 the source has a control record, as it has nothing where a cleaner was."""
    flow = mirror(east, west, tmp_path, config={"cleanup.policy": policy})
    produce(east, flow.topic, numbered(10), transactional="commit")
    as_mirrormaker(flow, 10, 9)
    write_syncs(flow, [(10, 5)])
    assert [is_loss for _, is_loss in whats(flow)] == ([] if policy == "compact" else [True])


def test_a_topic_that_was_created_again_is_told(east: Broker, west: Broker, tmp_path: Path) -> None:
    """MirrorMaker 2 resumes at the offset that it had come to, or at the beginning, as if nothing were."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(100))
    as_mirrormaker(flow, 100, 99)
    write_syncs(flow, [(0, 0), (99, 99)])
    delete_topic(east, flow.topic)
    create_topic(east, flow.topic, 1)
    produce(east, flow.topic, numbered(150, 1000))
    [(what, is_loss)] = whats(flow)
    assert is_loss and what.startswith("the source's log is not the one that was copied up to target offset 99")
    [row] = takeover_plan(flow.opened).partitions
    assert isinstance(row.error, TailDiffers)


def test_nothing_was_copied_yet(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Before a flow's first window, and before MirrorMaker 2's too."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(10))
    found = takeover_plan(flow.opened)
    [row] = found.partitions
    assert (row.recorded, row.start, row.end, row.error) == (-1, 0, 10, None)
    assert [each.what for each in found.drift] == ["topic"] and found.progress_ms is None

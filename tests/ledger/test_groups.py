"""The ledger's tables for consumer groups: mappings by position, checkpoints, and each group's outcome."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import replace
from uuid import UUID

import pytest

from airmirror.ledger import GroupLag, GroupOffset, Ledger
from airmirror.ledger.groups import ReadAgain
from airmirror.partitions import Entry
from airmirror.wire.checkpoints import Checkpoint
from airmirror.wire.mappings import MappedRange, MappingRecord
from airmirror.wire.mirrormaker import OffsetSync
from support.examples import share
from support.ledgers import MAPPINGS, ORDERS, ORDERS_AGAIN, TOPIC_ID, mapping, written

CHECKPOINTS, SYNCS = "east.checkpoints.internal", "mm2-offset-syncs.west.internal"


def records(seed: int) -> list[MappingRecord]:
    """Mapping records of several partitions and of two topics of one name; some copied nothing, some end in a gap."""
    chance = random.Random(seed)
    found = []
    for topic, partition, topic_id in [
        ("orders", 0, ORDERS),
        ("orders", 1, ORDERS),
        ("orders", 0, ORDERS_AGAIN),
        ("Ä", 0, ORDERS),
    ]:
        source, target = chance.randrange(5), 0
        for _ in range(12):
            whole = mapping(source, source + chance.randrange(1, 9), topic, partition, topic_id=topic_id)
            count = chance.randrange(whole.source_end - source + 1)
            runs = (MappedRange(source, target, count),) if count else ()
            target_end = target + count if count else 0
            fields = whole.__dict__ | {
                "ranges": runs,
                "copied": count,
                "target_start": target,
                "target_end": target_end,
            }
            found.append(MappingRecord(**fields))
            source, target = whole.source_end, target + count + (count > 0)
    return found


def test_mappings_are_found_by_position_on_either_side(ledger_url: str) -> None:
    everything = records(7)
    with closing(Ledger(ledger_url)) as ledger:
        flow = ledger.flow("east->west")
        entries = [written(number, record) for number, record in enumerate(everything)]
        flow.load(MAPPINGS, TOPIC_ID, entries, {0: len(entries)})
        ledger.flow("other->west").load(MAPPINGS, TOPIC_ID, entries[:3], {0: 3})
        partitions = sorted({(r.topic, r.partition, r.source_topic_id) for r in everything})
        asked = [(*partition, at) for partition in partitions for at in range(0, 70)]
        for side in ("source", "target"):

            def end(record: MappingRecord, side: str = side) -> int:
                return record.ranges[-1].source_end if side == "source" else record.target_end

            for position in [*random.Random(side).sample(asked, share(100)), (*partitions[0], 10**15)]:
                of_partition = [r for r in everything if (r.topic, r.partition, r.source_topic_id) == position[:3]]
                past = [r for r in of_partition if r.ranges and end(r) > position[3]]
                assert flow.mappings_at([position], side) == past[:1]
                copied_before = [r for r in of_partition if r.ranges and end(r) <= position[3]]
                first = of_partition.index(copied_before[-1]) if copied_before else 0
                last = of_partition.index(past[0]) if past else len(of_partition) - 1
                assert flow.mappings_around([position], side) == of_partition[first : last + 1]
            together = {record.encode_key() for record in flow.mappings_at(asked, side)}  # type: ignore[arg-type]
            assert together == {record.encode_key() for record in everything if record.ranges}
            around = flow.mappings_around(asked, side)  # type: ignore[arg-type]
            assert around == sorted(everything, key=lambda r: (r.topic, r.partition, r.source_start))
        firsts = [next(r for r in everything if (r.topic, r.partition, r.source_topic_id) == p) for p in partitions]
        assert sorted(flow.first_mappings(partitions), key=str) == sorted(firsts, key=str)
        assert flow.first_mappings([("orders", 7, ORDERS)]) == []
        assert flow.mappings_at([], "source") == [] == flow.mappings_around([], "source")


def test_checkpoints_are_loaded_deleted_and_forgotten_with_their_topic(ledger_url: str) -> None:
    first, moved = (
        Checkpoint("g", "east.orders", 0, 5, 4),
        Checkpoint(group="g", topic="east.orders", partition=0, upstream=9, downstream=8, metadata="note"),
    )
    other = Checkpoint("h", "east.orders", 1, 1, 1)
    broken = Entry(0, 3, 0, other.encode_key(), b"\x00\x07")
    entries = [written(0, first), written(1, other), written(2, moved), broken]
    with closing(Ledger(ledger_url)) as ledger:
        flow = ledger.flow("east->west")
        flow.load(CHECKPOINTS, TOPIC_ID, entries, {0: 4})
        assert flow.checkpoints() == {first.key: moved, other.key: other} and flow.malformed == 1
        flow.load(MAPPINGS, TOPIC_ID, [written(0, mapping(0, 9))], {0: 1})
        flow.load(CHECKPOINTS, TOPIC_ID, [Entry(0, 4, 0, other.encode_key(), None)], {0: 5})
        assert flow.checkpoints() == {first.key: moved}
        assert flow.scanned(CHECKPOINTS, UUID(int=77)) == {} and flow.checkpoints() == {}
        assert len(list(flow.mappings("orders", 0))) == 1  # the mappings are another topic's


def test_the_last_offset_sync_counts_until_its_topic_is_made_anew(
    ledger_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    syncs = [OffsetSync("orders", 0, 9, 8), OffsetSync("orders", 1, 5, 5), OffsetSync("orders", 0, 3, 40)]
    entries = [written(number, sync) for number, sync in enumerate(syncs)]
    entries += [Entry(0, 3, 0, b"foreign", b"record"), Entry(0, 4, 0, syncs[1].encode_key(), None)]
    with closing(Ledger(ledger_url)) as ledger:
        flow = ledger.flow("east->west")
        flow.load(SYNCS, TOPIC_ID, entries, {0: 5}, {0: 0})
        assert flow.offset_syncs() == {("orders", 0): 3, ("orders", 1): 5} and flow.malformed == 1
        assert f"{SYNCS}-0 offset 3 is skipped" in caplog.text
        assert flow.numbers() == {("malformed", "offset_syncs"): 1.0}
        assert flow.scanned(SYNCS, TOPIC_ID) == {0: 5} and flow.contents()["scanned"] == []
        flow.load(CHECKPOINTS, TOPIC_ID, [written(0, Checkpoint("g", "east.orders", 0, 5, 4))], {0: 1})
        assert flow.scanned(SYNCS, UUID(int=77)) == {} and flow.offset_syncs() == {}
        assert len(flow.checkpoints()) == 1
        flow.load("ours", TOPIC_ID, entries[:1], {0: 1}, kind="offset_syncs")  # as a policy of one's own calls it
        assert flow.offset_syncs() == {("orders", 0): 9}


def test_what_a_task_did_replaces_what_the_last_did(ledger_url: str) -> None:
    row = GroupOffset(
        group="g",
        topic="orders",
        partition=0,
        remote_topic="east.orders",
        position=5,
        upstream=5,
        downstream=4,
        exact=True,
        again=0,
        on_target=None,
        reason="",
        time_ms=1000,
    )
    refused = GroupOffset(
        group="h",
        topic="orders",
        partition=1,
        remote_topic="east.orders",
        position=7,
        upstream=None,
        downstream=None,
        exact=None,
        again=None,
        on_target=3,
        reason="not yet verified",
        time_ms=1000,
    )
    with closing(Ledger(ledger_url)) as ledger:
        flow = ledger.flow("east->west")
        flow.note_group_offsets([refused, row])
        assert flow.group_offsets() == [row, refused]
        flow.note_group_offsets([refused])
        assert flow.group_offsets() == [refused]
        assert ledger.flow("east->north").group_offsets() == []
        assert flow.last_begun("emit_checkpoints") is None
        flow.note_begun("emit_checkpoints")
        flow.note_begun("emit_checkpoints")
        assert flow.last_begun("emit_checkpoints") is not None
        assert flow.contents().keys().isdisjoint({"group_offsets", "post_window_tasks"})
        flow.forget()
        assert flow.group_offsets() == []


def test_what_a_group_would_read_again_is_of_one_flow(ledger_url: str) -> None:
    one = GroupLag(
        group="g", topic="t", partition=0, cluster="east", position=5, lag=1, lag_ms=7, time_ms=9, again=3, again_ms=40
    )
    others = [replace(one, partition=1, again=0, again_ms=0), replace(one, partition=2, again=2, again_ms=None)]
    unknown = replace(one, group="h", again=None, again_ms=None)
    with closing(Ledger(ledger_url)) as ledger:
        ledger.flow("east->west").note_group_lags([one, *others, unknown])
        ledger.flow("east->north").note_group_lags([replace(one, again=9, again_ms=None)])
        assert sorted(ledger.read_again(), key=str) == sorted(
            [ReadAgain("east->west", "g", 5, 40), ReadAgain("east->north", "g", 9, None)], key=str
        )


def test_the_lag_of_a_group_that_several_flows_have_read_is_the_latest_one(ledger_url: str) -> None:
    early = GroupLag(
        group="g", topic="orders", partition=0, cluster="east", position=5, lag=10, lag_ms=700, time_ms=1000
    )
    late, other = replace(early, position=8, lag=7, time_ms=2000), replace(early, partition=1, lag_ms=None)
    with closing(Ledger(ledger_url)) as ledger:
        ledger.flow("east->west").note_group_lags([late, other])
        ledger.flow("east->north").note_group_lags([early])
        ledger.flow("west->east").note_group_lags([replace(early, cluster="west")])
        assert sorted(ledger.group_lags(), key=str) == sorted([late, other, replace(early, cluster="west")], key=str)
        ledger.flow("east->west").note_group_lags([])
        assert sorted(ledger.group_lags(), key=str) == sorted([early, replace(early, cluster="west")], key=str)

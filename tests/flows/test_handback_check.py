"""MirrorMaker 2's first records after a hand-back: the very next one, nothing yet, a gap, a duplicate, or somebody else's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.runbooks.takeover import handback_check
from airmirror.runbooks.takeover.handback_check import (
    CopyDifference,
    HandbackCheck,
    HandbackVerdict,
    check_handback,
    first_records,
)
from airmirror.windows.mirror import Mirror as Session
from airmirror_local.brokers import Broker
from support.flows import Mirror, mirror
from support.hostile import delete_records
from support.mirrormaker import numbered
from support.topics import Record, await_settled, end_offsets, produce, read_all

AT = 100  # the source offset that is handed back
RESUMES, YET, GAP, TWICE, STRANGE = (
    HandbackVerdict.RESUMED,
    HandbackVerdict.NOTHING_YET,
    HandbackVerdict.GAP,
    HandbackVerdict.TWICE,
    HandbackVerdict.STRANGE,
)
Found = tuple[HandbackVerdict, tuple[int, int] | None, list[CopyDifference]]


def handed_back(east: Broker, west: Broker, directory: Path, partitions: int) -> tuple[Mirror, int]:
    """A flow that has copied ``AT`` records of each partition, and verified them; the target's end after the marker."""
    flow = mirror(east, west, directory, partitions=partitions)
    for partition in range(partitions):
        produce(east, flow.topic, numbered(AT, 1000 * partition), partition=partition)
    assert flow.run().is_verified
    [first] = set(end_offsets(west, flow.remote_topic).values())
    return flow, first


def found_in(checked: HandbackCheck) -> list[Found]:
    return [(row.verdict, row.first, list(row.differences)) for row in checked.partitions]


def test_its_first_records_are_told_by_partition(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Each partition another case; MirrorMaker 2's records are written by hand, after those of the window."""
    flow, first = handed_back(east, west, tmp_path, 10)
    for partition in set(range(10)) - {2}:
        if partition in (7, 8):
            produce(east, flow.topic, numbered(5, 9000), partition=partition, transactional="abort")
            await_settled(east, flow.topic)  # its marker is there before what comes next
        produce(east, flow.topic, numbered(50, 1000 * partition + AT), partition=partition)
    every = read_all(east, flow.topic, "read_uncommitted")

    def copied(partition: int, *runs: tuple[int, int], change: Callable[[Record], Record] = lambda it: it) -> None:
        records = [each for begin, end in runs for each in every[partition] if begin <= each.offset < end]
        produce(west, flow.remote_topic, [change(each) for each in records], partition=partition)

    copied(0, (100, 150))
    copied(3, (110, 150))
    copied(4, (90, 150))
    produce(west, flow.remote_topic, [Record(b"foreign", timestamp=1)], partition=5)
    copied(5, (100, 150))
    copied(6, (100, 120), (130, 150), (140, 150))
    copied(7, (100, 160))  # as by default: what was aborted too
    copied(8, (106, 160))  # as it reads committed records
    copied(9, (100, 150), change=lambda each: replace(each, timestamp=each.timestamp + 1))
    checked = check_handback(flow.opened)
    gap = CopyDifference(GAP, (100, 110), (first, first), 10)
    assert found_in(checked) == [
        (RESUMES, (100, first), []),
        (YET, None, []),
        (HandbackVerdict.NOTHING_NEW, None, []),
        (GAP, (110, first), [gap]),
        (TWICE, (90, first), [CopyDifference(TWICE, (90, 100), (first, first + 10), 10)]),
        (STRANGE, None, [CopyDifference(STRANGE, (-1, -1), (first, first + 1), 1)]),
        (
            GAP,
            (100, first),
            [
                CopyDifference(GAP, (120, 130), (first + 20, first + 20), 10),
                CopyDifference(TWICE, (140, 150), (first + 40, first + 50), 10),
            ],
        ),
        (RESUMES, (100, first), []),
        (RESUMES, (106, first), []),
        (STRANGE, None, [CopyDifference(STRANGE, (-1, -1), (first, first + 50), 50)]),
    ]
    assert checked.is_wrong and not checked.has_resumed and not checked.running
    with Session.open(flow.flow, flow.opened.ledger, "test") as session:
        session.source.refresh([flow.topic])
        session.target.refresh([flow.remote_topic])
        row = first_records(session, flow.opened.ledger.state().mappings[flow.topic, 3], compacted=True)
    assert (row.verdict, row.differences) == (HandbackVerdict.UNKNOWN, (gap,)), "a cleaner may have taken them"


def test_one_that_begins_far_away_and_one_that_is_waited_for(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They copy while they are waited for: one as it should, one the latest records, and then one from the beginning."""
    monkeypatch.setattr(handback_check, "FIRST", 5)
    monkeypatch.setattr(handback_check, "BACK", 10)
    flow, first = handed_back(east, west, tmp_path, 3)
    for partition in range(3):
        produce(east, flow.topic, numbered(100, 1000 * partition + AT), partition=partition)
    records = read_all(east, flow.topic)
    steps = iter([(2, AT), (1, 190)])

    def copies(_: float) -> None:
        partition, begin = next(steps)
        produce(west, flow.remote_topic, records[partition][begin:], partition=partition)

    monkeypatch.setattr(handback_check.time, "sleep", copies)
    resumes = (RESUMES, (100, first), [])
    gap = (GAP, (190, first), [CopyDifference(GAP, (100, 190), (first, first), -1)])
    waited = check_handback(flow.opened, wait=60)
    assert found_in(waited) == [(YET, None, []), gap, resumes], "where one is wrong nobody waits any longer"
    produce(west, flow.remote_topic, records[0][:AT], partition=0)
    twice = (TWICE, (0, first), [CopyDifference(TWICE, (0, 1), (first, first + 1), -1)])
    assert found_in(check_handback(flow.opened)) == [twice, gap, resumes]
    delete_records(east, flow.topic, 150)
    row = check_handback(flow.opened).partitions[0]
    assert row.verdict is HandbackVerdict.UNKNOWN and row.reason == "the source has deleted offsets 100 to 149 since"

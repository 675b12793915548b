"""A flow's report from records of the mapping topic alone, without clusters: what is proven, and what is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from airmirror.config import parse
from airmirror.flows import report
from airmirror.flows.prepare import Opened
from airmirror.flows.report_now import Now
from airmirror.flows.report_rows import Span, progress, told
from airmirror.ledger import Ledger
from airmirror.partitions import TopicPartition
from airmirror.report.document import Document
from airmirror.slot.account import NO_DIGEST
from airmirror.wire.mappings import Hold, MappingRecord
from support.ledgers import MAPPINGS, ORDERS, ORDERS_AGAIN, TOPIC_ID, mapping, verified, written

FLOW = """\
clusters = east, west
east.bootstrap.servers = e:1
west.bootstrap.servers = w:1
east->west.enabled = true
"""
ALWAYS = Span()
NOTHING = Now({}, {}, "", (), ())
HOLD = Hold(topic="orders", partition=0, offset=0, reason="INC-7", window="", by="ada", time_ms=5)


def read_back(start: int, end: int, topic_id: UUID = ORDERS) -> MappingRecord:
    """A mapping record of which the slot has read the target."""
    return replace(mapping(start, end, topic_id=topic_id), digest=b"d" * 16, read_ms=1, target_epoch=0)


class Recorded:
    """A flow whose mapping topic has the test's records."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._directory, self._patch, self._count = directory, monkeypatch, 0

    @contextmanager
    def opened(self, *records: object) -> Iterator[Opened]:
        self._count += 1
        ledger = Ledger(f"sqlite:///{self._directory}/{self._count}.db")
        try:
            of_flow = ledger.flow("east->west")
            entries = [written(offset, record) for offset, record in enumerate(records)]
            of_flow.load(MAPPINGS, TOPIC_ID, entries, {0: len(entries)})
            configuration = parse(FLOW, "f")
            yield Opened(configuration, configuration.flow(), of_flow)
        finally:
            ledger.close()

    def report(self, *records: object, target: Now = NOTHING, span: Span = ALWAYS) -> Document:
        with self.opened(*records) as opened:
            self._patch.setattr(report, "record_of", self._same)
            self._patch.setattr(report, "_compare_ledger", lambda *_: ([], ()))
            self._patch.setattr(report, "now", lambda cluster, _: target if cluster.alias == "west" else NOTHING)
            return report.report_flow(opened, span)

    @contextmanager
    def _same(self, opened: Opened) -> Iterator[Opened]:
        yield opened


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    return Recorded(tmp_path, monkeypatch)


def test_a_time_ends_before_its_end() -> None:
    span = Span(10, 20)
    assert [span.holds(time_ms) for time_ms in (9, 10, 19, 20)] == [False, True, True, False]
    assert Span().holds(0)


def test_what_is_proven_is_verified_to_its_end_and_not_held(recorded: Recorded) -> None:
    whole = (read_back(0, 10), read_back(10, 20))
    good = recorded.report(*whole, verified(19))
    assert good.is_good and "each of them was found equal on the target" in good.headline, good
    (row,) = good.rows("partitions")
    assert (row["verdict"], row["copied"], row["source"], row["verified_to"]) == ("verified", 20, [[0, 20]], 20)
    for more, why in (
        ((verified(9),), "offsets from 10 on are not verified yet"),
        ((verified(18),), "offsets from 19 on are not verified yet"),
        ((verified(19), HOLD), "held: INC-7"),
        ((verified(29), read_back(25, 30)), "no mapping record covers the offsets 20 to 24"),
    ):
        bad = recorded.report(*whole, *more)
        (row,) = bad.rows("partitions")
        assert (row["verdict"], row["why"]) == ("not proven", why)
        assert not bad.is_good and "1 of 1 partitions are not proven" in bad.headline


def test_a_topic_that_was_made_again_is_proven_by_its_own_records_only(recorded: Recorded) -> None:
    with recorded.opened(read_back(0, 10), verified(9), read_back(0, 5, ORDERS_AGAIN)) as opened:
        first, again = told(opened.ledger, "east", Span())
    assert (first.is_newest, first.verified, first.is_proven) == (False, 10, True)
    assert (again.is_newest, again.verified, again.is_proven) == (True, 0, False)


def test_what_is_lost_or_was_not_read_back_is_not_told_as_equal(recorded: Recorded) -> None:
    lost = replace(read_back(10, 20), copied=8, lost=2, ranges=read_back(10, 18).ranges)
    said = recorded.report(read_back(0, 10), lost, verified(19))
    assert not said.is_good and said.numbers["offsets lost"] == 2 and said.headline.endswith("; 2 are declared lost.")
    unread = replace(read_back(0, 10), target_epoch=-1)
    said = recorded.report(unread, verified(9))
    assert "10 were not read back" in said.headline and said.numbers["records not read back"] == 10


def test_a_targets_log_that_was_cut_contradicts_the_record(recorded: Recorded) -> None:
    remote = TopicPartition("east.orders", 0)
    records = (read_back(0, 10), verified(9))
    for end, lines in ((10, 0), (9, 1)):
        said = recorded.report(*records, target=replace(NOTHING, ends={remote: end}))
        assert len(said.rows("contradictions")) == lines and said.is_good is not bool(lines)
    said = recorded.report(*records, target=replace(NOTHING, gone=frozenset({remote})))
    assert not said.is_good and said.numbers["contradictions"] == 1


def test_what_pruning_has_left_is_not_told_as_all(recorded: Recorded) -> None:
    left = (read_back(20, 30), read_back(30, 40), verified(39))  # committed at 1,020 and 1,030 ms
    for span, copied, is_cut in (
        (Span(), 20, True),
        (Span(first_ms=500), 20, True),
        (Span(first_ms=1025), 10, False),
        (Span(first_ms=1020), 20, False),
    ):
        said = recorded.report(*left, span=span)
        assert said.is_good and f"{copied} records were copied from east to west" in said.headline
        assert ("of which mapping records are left" in said.headline) is is_cut
        assert any("oldest mapping record that is left" in line for line in said.not_known) is is_cut
    unknown = recorded.report(*left, span=Span(500, 600))
    assert "is not known any more" in unknown.headline and not unknown.is_good
    assert recorded.report(*left, span=Span(2000)).headline.startswith("Nothing was copied")
    begun = (replace(read_back(20, 30), target_start=0), verified(29))  # a flow that began at the latest offsets
    assert "are left" not in recorded.report(*begun, span=Span(500)).headline


def test_what_has_returned_was_copied_by_no_other_tool(recorded: Recorded) -> None:
    back = replace(mapping(10, 20, window="return-1"), digest=NO_DIGEST)
    others = replace(mapping(20, 25, window="w2"), digest=NO_DIGEST)
    said = recorded.report(read_back(0, 10), back, verified(19))
    assert said.is_good and said.numbers["records returned"] == 10 and said.numbers["records not read back"] == 0
    assert "10 of them the other way" in said.headline and "found equal" in said.headline
    assert not any("another tool" in line for line in (said.headline, *said.not_known))
    said = recorded.report(read_back(0, 10), back, others, verified(24))
    assert "all but 5 that another tool had copied" in said.headline
    lossy = replace(back, copied=8, lost=2, ranges=mapping(10, 18).ranges)
    assert recorded.report(read_back(0, 10), lossy, verified(19)).numbers["records not read back"] == 0


def test_a_record_without_offsets_leaves_a_partitions_digest_as_it_is(recorded: Recorded) -> None:
    """The next record of the partition takes its place: a report that was made before would be wrong since."""
    digests = [
        recorded.report(read_back(0, 10), *more, verified(9)).rows("partitions")[0]["sha256"]
        for more in ((), (read_back(10, 10),))
    ]
    assert digests[0] == digests[1]


def test_the_curve_ends_with_all_records(recorded: Recorded) -> None:
    beside = replace(read_back(0, 4), partition=1)  # committed in the same millisecond as the first
    with recorded.opened(read_back(0, 10), beside, read_back(10, 20), read_back(20, 25)) as opened:
        points = progress(told(opened.ledger, "east", Span()))
    assert [point["records"] for point in points] == [14, 24, 29]
    assert points[-1]["time_ms"] == read_back(20, 25).time_ms

"""Where two logs part, by what leader epochs tell of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from airmirror.clusters.protocol import epochs
from airmirror.clusters.protocol.epochs import EpochEnd, epoch_before, epochs_since
from airmirror.partitions import TopicPartition
from airmirror.windows.diverged import EpochRange, LogDivergence, parting


def ask_of(log: Sequence[int], epoch: int) -> EpochEnd:
    """As a leader answers whose log has these epochs, one an offset."""
    if not log or epoch > log[-1]:
        return EpochEnd(-1, -1)
    end = bisect_right(log, epoch)
    return EpochEnd(log[end - 1], end) if end else EpochEnd(epoch, 0)


def told(copied: Sequence[int], ends: Sequence[int], log: Sequence[int]) -> LogDivergence | None:
    """What is told of a log whose offsets were copied under these epochs, in records that end there."""
    starts = [0, *ends[:-1]]
    known = [EpochRange(copied[end - 1], start, end) for start, end in zip(starts, ends, strict=True)]
    return parting(known, lambda epoch: ask_of(log, epoch))


def test_the_same_log_that_has_grown() -> None:
    assert told([0] * 100, [40, 100], [0] * 120) is None
    assert told([0] * 100, [40, 100], [0] * 100 + [3] * 20) is None


def test_an_election_cut_the_log() -> None:
    assert told([0] * 200, [100, 200], [0] * 100 + [1] * 300) == LogDivergence(100, 100)
    assert told([0] * 200, [100, 200], [0] * 150 + [1] * 10) == LogDivergence(150, 150)


def test_a_leader_with_a_suffix_of_an_older_epoch_is_asked_again() -> None:
    """Its epoch 0 ends at 120, but what was copied of it ends at 100."""
    log = [0] * 120 + [2] * 40
    assert told([0] * 100 + [1] * 50, [100, 150], log) == LogDivergence(100, 120)
    assert told([0] * 100 + [1] * 50, [80, 150], log) == LogDivergence(80, 120)
    assert told([0] * 100 + [1] * 50, [150], log) == LogDivergence(0, 120)
    assert told([0] * 100 + [1] * 10 + [1] * 40, [100, 110, 150], log) == LogDivergence(100, 110)


def test_a_leader_that_knows_none_of_the_epochs() -> None:
    assert told([3] * 100, [50, 100], [1] * 200) == LogDivergence(0, 50)
    assert told([1] * 50 + [3] * 50, [50, 100], [1] * 200) == LogDivergence(50, 100)


@given(st.data())
def test_the_place_where_logs_part_lies_within(data: st.DataObject) -> None:
    """Logs share a prefix and differ after it: an epoch has one leader, so no batch after it is of an epoch of the other's.

    Each leader begins its epoch once, with what it has; two logs that hold an epoch agree on it from its beginning on.
    """
    prefix = sorted(data.draw(st.lists(st.integers(0, 4), max_size=12)))
    last = prefix[-1] if prefix else 0
    mine = sorted(data.draw(st.lists(st.sampled_from([5, 7, 9]), max_size=12)))
    theirs = sorted(data.draw(st.lists(st.sampled_from([6, 8, 10]), max_size=12)))
    more = [last] * data.draw(st.integers(0, 5))  # of the last epoch in common, that one side alone has
    copied, log = [*prefix, *mine], [*prefix, *theirs]
    if prefix and data.draw(st.booleans()):
        log = [*prefix, *more, *theirs]
    elif prefix:
        copied = [*prefix, *more, *mine]
    if not copied or not log:
        return
    ends = sorted({*data.draw(st.lists(st.integers(1, len(copied)))), len(copied)})
    found = told(copied, ends, log)
    if len(copied) == len(prefix):
        assert found is None or found.same <= len(prefix) == found.other
    elif found is not None:
        assert found.same <= len(prefix) <= found.other
    else:
        assert log[: len(copied)] == copied


@given(st.lists(st.integers(0, 9), max_size=12).map(sorted), st.integers(0, 9), st.data())
def test_the_epoch_of_each_record_is_told_down_to_the_one_before_an_offset(
    log: list[int], leads: int, data: st.DataObject
) -> None:
    """Also where epochs have no records, where retention took the first ones, and where the leader has written none."""
    key, begins = TopicPartition("orders", 0), data.draw(st.integers(0, len(log)))
    leads = max([leads, *log])
    start = data.draw(st.integers(0, len(log)))

    def ask(_: Any, asked: dict[TopicPartition, int]) -> dict[TopicPartition, EpochEnd]:
        kept = sorted({*log[begins:], leads})  # a leader notes where its own epoch begins
        end = begins + bisect_right(log[begins:], asked[key])
        known = [epoch for epoch in kept if epoch <= asked[key]]
        return {key: EpochEnd(known[-1] if known else asked[key], end)}

    leader: Any = SimpleNamespace(refresh=lambda _: None, leader=lambda _: SimpleNamespace(epoch=leads))
    with (
        patch.object(epochs, "epoch_ends", ask),
        patch.object(epochs, "offsets_with_patience", lambda *_: {key: begins}),
    ):
        found = epochs_since(leader, {key: start})[key]
    for offset in range(start, len(log) + 1):
        assert epoch_before(found, offset) == (log[offset - 1] if offset > begins else -1)

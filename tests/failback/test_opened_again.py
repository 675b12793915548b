"""A flow that goes on after a return, or after a rescue: a log that was cut is told, and nothing of others is passed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from airmirror.failback.rescue import RescueOrder, rescue
from airmirror.failback.steps import return_step
from airmirror.failover.steps import fail_over
from airmirror.flows.closing import close, closures_now, reopen
from airmirror.flows.opening import WrittenBeforeRescued
from airmirror.flows.verification import compare_all
from airmirror.slot.errors import SourceDiverged
from airmirror.wire.closures import WHOLE
from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from support.failovers import DISASTER, PLANNED, without_source
from support.returns import ORDER, there_and_back, write
from support.sides import Sides
from support.topics import end_offsets, read_all

APPEND = RescueOrder("INC-7", "ada", append=True)


def lose_log(broker: Broker, topic: str) -> None:
    """As an unclean election does: its log is cut, and grows again under a later leader epoch."""
    broker.kill()
    (log,) = broker.directory.rglob(f"{topic}-0")
    shutil.rmtree(log)
    broker.restart()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("begun", ["over", "begun"])
def test_a_log_that_is_cut_after_a_return_and_has_grown_past_it_is_told(tmp_path: Path, begun: str) -> None:
    """No window has copied anything since: what a return has committed alone tells the log."""
    brokers = [start_broker(tmp_path, name, IMPATIENT) for name in ("source", "target")]
    try:
        both = there_and_back(*brokers, tmp_path, partitions=1)
        write(both.east, both.topic, 0, 20, partitions=1)
        both.window(both.there)
        fail_over(both.there, PLANNED)
        if begun == "begun":
            return_step(both.pair, ORDER)
            broker, topic, flow = both.west, both.remote, both.back
        else:
            write(both.west, both.remote, 100, 12, partitions=1)
            both.fail_back()
            broker, topic, flow = both.east, both.topic, both.there
        (last,) = both.now(flow).ledger.last_segments().values()
        assert min(last.leader_epoch, last.target_epoch) >= 0 and last.copied == 0
        lose_log(broker, topic)
        write(broker, topic, 500, last.source_end + 30, partitions=1)
        other = read_all(both.east if flow is both.back else both.west, last.remote_topic)
        result = both.window(flow)
        assert [type(row.error) for row in result.rows] == [SourceDiverged] and result.copied == 0
        assert read_all(both.east if flow is both.back else both.west, last.remote_topic) == other
    finally:
        for each in brokers:
            each.kill()


def test_a_flow_is_not_opened_over_what_applications_wrote_before_a_rescue(sides: Sides, tmp_path: Path) -> None:
    """Refused, with nothing changed; and what they wrote returns."""
    both = there_and_back(sides.east, sides.west, tmp_path)
    crossed = write(both.east, both.topic, 0, 10)
    both.window(both.there)
    fail_over(without_source(both.there), DISASTER)
    never = write(both.east, both.topic, 50, 6)
    since = write(both.west, both.remote, 100, 40)
    rescue(both.there, APPEND)
    before = end_offsets(both.west, both.remote), both.now(both.there).ledger.last_segments()
    with pytest.raises(WrittenBeforeRescued, match=r"airmirror failback run") as refused:
        reopen(both.there, (), reason="it is back", by="ada")
    assert refused.value.partitions == (f"{both.remote}-0", f"{both.remote}-1")
    assert WHOLE in closures_now(both.there)
    assert before == (end_offsets(both.west, both.remote), both.now(both.there).ledger.last_segments())
    both.fail_back()
    east = [value for its in both.values(both.east).values() for value in its]
    assert set(east) == {*crossed, *never, *since} and sorted(each for each in east if each in since) == sorted(since)
    new = write(both.east, both.topic, 300, 4)
    result = both.window(both.there)
    assert result.is_verified and result.copied == len(new)
    assert all(row.error is None for row in compare_all(both.there, []))


def test_rescued_records_one_after_the_other_are_passed(sides: Sides, tmp_path: Path) -> None:
    """Their transactions' markers lie between them, and no record of others."""
    both = there_and_back(sides.east, sides.west, tmp_path, partitions=1)
    everything = write(both.east, both.topic, 0, 10, partitions=1)
    both.window(both.there)
    close(both.there, (), reason="INC-7", by="ada")
    for first in (50, 60):
        everything += write(both.east, both.topic, first, 6, partitions=1)
        rescue(both.there, APPEND)
    reopen(both.there, (), reason="it is back", by="ada")
    everything += write(both.east, both.topic, 300, 4, partitions=1)
    result = both.window(both.there)
    assert result.is_verified and result.copied == 4
    assert both.values(both.west)[0] == everything

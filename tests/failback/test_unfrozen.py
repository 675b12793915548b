"""A flow that resumes after a return, or after a rescue: a log that was cut is told, and nothing of others is passed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from airmirror.report.page import page
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.plan import failback_plan
from airmirror.runbooks.failback.rescue import rescue
from airmirror.runbooks.failback.returning import LeftOnSource
from airmirror.runbooks.failback.shown import shown_plan
from airmirror.runbooks.failback.steps import return_step
from airmirror.slot.errors import SourceDiverged
from airmirror_local.brokers import Broker
from support.failovers import DISASTER, PLANNED, fail_over, without_source
from support.returns import ORDER, forward_and_reverse, write
from support.servers import keep
from support.sides import Sides
from support.topics import admin, create_topic, delete_topic, read_all

RESCUE = FailbackOrder(reason="INC-7", by="ada")


def lose_log(broker: Broker, topic: str) -> None:
    """As an unclean election does: its log is cut, and grows again under a later leader epoch."""
    broker.kill()
    (log,) = broker.directory.rglob(f"{topic}-0")
    shutil.rmtree(log)
    broker.restart()
    keep(broker.process)


@pytest.mark.long  # test_what_was_written_over_there_returns sees the epochs by which it is told
@pytest.mark.parametrize("begun", ["over", "begun"])
def test_a_log_that_is_cut_after_a_return_and_has_grown_past_it_is_told(
    sides: Sides, tmp_path: Path, begun: str
) -> None:
    """No window has copied anything since: what a return has committed alone tells the log."""
    both = forward_and_reverse(sides.east, sides.west, tmp_path, partitions=1)
    write(both.east, both.topic, 0, 20, partitions=1)
    both.window(both.forward)
    fail_over(both.forward, PLANNED)
    if begun == "begun":
        return_step(both.pair, ORDER)
        broker, topic, flow = both.west, both.remote, both.reverse
    else:
        write(both.west, both.remote, 100, 12, partitions=1)
        both.fail_back()
        broker, topic, flow = both.east, both.topic, both.forward
    (last,) = both.now(flow).ledger.last_mappings().values()
    assert min(last.leader_epoch, last.target_epoch) >= 0 and last.copied == 0
    lose_log(broker, topic)
    write(broker, topic, 500, last.source_end + 30, partitions=1)
    other = read_all(both.east if flow is both.reverse else both.west, last.remote_topic)
    result = both.window(flow)
    assert [type(row.error) for row in result.rows] == [SourceDiverged] and result.copied == 0
    assert read_all(both.east if flow is both.reverse else both.west, last.remote_topic) == other


def test_what_the_flow_copies_by_itself_is_not_rescued_but_waits(sides: Sides, tmp_path: Path) -> None:
    """A topic that came after the failover, and one of which nothing had been replicated: each comes once, when the flow is
    unfrozen."""
    empty = create_topic(sides.east, "orders-empty", 1)
    both = forward_and_reverse(
        sides.east, sides.west, tmp_path, partitions=1, settings={"east->west.topics": "orders-.*"}
    )
    replicated = write(both.east, both.topic, 0, 10, partitions=1)
    both.window(both.forward)
    fail_over(without_source(both.forward), DISASTER)
    late = create_topic(sides.east, "orders-late", 1)
    never = write(both.east, both.topic, 50, 4, partitions=1)
    new = {topic: write(both.east, topic, first, 3, partitions=1) for topic, first in ((empty, 60), (late, 70))}
    since = write(both.west, both.remote, 100, 5, partitions=1)
    plan = failback_plan(both.now(both.forward))
    assert {each.topic: each.waits.records for each in plan.partitions} == {both.topic: 0, empty: 3, late: 3}
    assert plan.never == 4 and "orders-late-0 (3): the flow copies them" in page(
        shown_plan(plan).as_dict() | {"signer": None}
    )
    chosen, after = rescue(both.forward, RESCUE)
    assert [each.row.topic for each in chosen] == [both.topic] and after.never == 0
    both.fail_back()
    result = both.window(both.forward)
    assert result.is_verified and result.copied == 6
    for topic, its in new.items():
        assert [each.value for each in read_all(both.west, f"east.{topic}")[0]] == its
    assert both.values(both.west)[0] == [*replicated, *since]
    assert both.values(both.east)[0] == [*replicated, *never, *since], "nothing that was rescued returns"
    aside = [name for name in admin(both.west).list_topics(timeout=30).topics if ".rescued." in name]
    assert [name.partition(".rescued.")[0] for name in aside] == [both.remote]


def test_a_topic_that_was_empty_is_accounted_for_where_something_returned(sides: Sides, tmp_path: Path) -> None:
    """Then the flow does not begin with what is on the source: that is never replicated, and is rescued first."""
    both = forward_and_reverse(sides.east, sides.west, tmp_path, partitions=1)
    both.window(both.forward)
    fail_over(both.forward, PLANNED)
    since = write(both.west, both.remote, 100, 5, partitions=1)
    never = write(both.east, both.topic, 50, 3, partitions=1)
    with pytest.raises(LeftOnSource, match="3 records"):
        both.fail_back()
    rescue(both.forward, RESCUE)
    both.fail_back()
    assert both.values(both.east)[0] == [*never, *since] and both.values(both.west)[0] == since
    new = write(both.east, both.topic, 300, 4, partitions=1)
    assert both.window(both.forward).copied == 4 and both.values(both.west)[0] == [*since, *new]


def test_what_the_target_has_lost_is_rescued(sides: Sides, tmp_path: Path) -> None:
    """There is no remote topic any more."""
    gone = create_topic(sides.east, "orders-gone", 1)
    both = forward_and_reverse(
        sides.east, sides.west, tmp_path, partitions=1, settings={"east->west.topics": "orders-.*"}
    )
    lost = write(both.east, gone, 0, 3, partitions=1)
    both.window(both.forward)
    fail_over(both.forward, PLANNED)
    delete_topic(sides.west, f"east.{gone}")
    [chosen], plan = rescue(both.forward, RESCUE)
    assert chosen.row.topic == gone and chosen.into.startswith(f"east.{gone}.rescued.") and plan.never == 0
    assert [each.value for each in read_all(both.west, chosen.into)[0]] == lost

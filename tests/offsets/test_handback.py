"""MirrorMaker 2 copies for a while in between, and Airmirror resumes after the reset that its error advises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from airmirror.clusters.admin.appender import Appender
from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.windows.resets import Choice
from airmirror.wire.mirrormaker import murmur2_partition, source_offset_key, source_offset_value
from airmirror_local.brokers import Broker
from support.flows import Mirror, mirror
from support.groups import commit, committed
from support.post_window import apply, reverse_of, sync
from support.topics import Record, produce, read_all


def values(first: int, end: int) -> list[Record]:
    return [Record(b"v%d" % n) for n in range(first, end)]


def copied_by_mirrormaker(flow: Mirror, first: int, end: int) -> None:
    """The records, and progress past them."""
    produce(flow.target, flow.remote_topic, values(first, end), partition=0)
    key = source_offset_key(flow.flow.source.alias, flow.topic, 0)
    topic = f"mm2-offsets.{flow.flow.source.alias}.internal"
    with Appender(flow.flow.target, topic, murmur2_partition(key, 3)) as appender:
        appender.append([(key, source_offset_value(end - 1))])


def test_no_group_skips_what_mirrormaker_2_copied_in_between(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, values(0, 100))
    flow.run()
    produce(east, flow.topic, values(100, 150))
    copied_by_mirrormaker(flow, 100, 150)
    produce(east, flow.topic, values(150, 200))
    flow.run()
    carry_out(flow.opened, ResetOrder((flow.topic,), (), Choice.ACCEPT_LOSS, by="ada", reason="a test"))
    flow.run()
    there, back = topic("there"), topic("back")
    groups = {f"{there}-{position}": position for position in (0, 60, 99, 100, 120, 149, 150, 180, 200)}
    for group, position in groups.items():
        commit(east, group, {(flow.topic, 0): position})
    target = read_all(west, flow.remote_topic)[0]
    assert {record.value for record in target} == {b"v%d" % n for n in range(200)}
    verified = flow.opened.ledger.verified()[flow.topic, 0]
    moved = {row.group: row for row in sync(flow.opened, f"{there}.*")}
    for group, position in groups.items():
        at = committed(west, group).get((flow.remote_topic, 0))
        assert (at is None) == bool(moved[group].reason), group
        if at is None:
            continue
        assert at <= verified.target_end, "never past what is verified"
        unread = {record.value for record in target if record.offset >= at}
        assert {b"v%d" % n for n in range(position, 200)} <= unread, f"{group} is at {at}"
    assert moved[f"{there}-60"].downstream == 60 and not moved[f"{there}-0"].reason

    back_groups = {f"{back}-{record.offset}": record for record in (target[60], target[120], target[-1])}
    for group, record in back_groups.items():
        commit(west, group, {(flow.remote_topic, 0): record.offset})
    apply(reverse_of(flow), *back_groups)
    for group, record in back_groups.items():
        at = committed(east, group).get((flow.topic, 0))
        if at is not None:
            assert at <= int((record.value or b"")[1:]), f"{group} is at {at}"
    assert committed(east, f"{back}-60") == {(flow.topic, 0): 60}

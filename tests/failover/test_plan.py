"""The plan of a failover, with the source there and gone: what has been replicated, where groups resume, what is not known."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from airmirror.clusters.admin.client import connect
from airmirror.clusters.admin.creation import create_partitions
from airmirror.clusters.admin.description import NewPartitions
from airmirror.flows.following import following_of
from airmirror.flows.gates import Expectations
from airmirror.flows.measure import measure_window
from airmirror.flows.post_window import CHECKPOINTS, do_task
from airmirror.flows.prepare import Opened, prepare
from airmirror.ledger import Ledger
from airmirror.ledger.recovery import complete_ms
from airmirror.offsets.translation import Reason
from airmirror.report.canonical import canonical, parsed
from airmirror.report.page import page
from airmirror.runbooks.failover.plan import FailoverPlan, failover_plan
from airmirror.runbooks.failover.shown import headline, shown_plan
from airmirror.windows.window import WindowOrder, run_window, verify_window
from airmirror_local.brokers import Broker
from airmirror_local.ports import LOOPBACK, free_port
from support.flows import Mirror, in_this_process, mirror
from support.following import SETTINGS, await_verified, ended_by_event, follow, patiently
from support.groups import commit, member
from support.topics import Record, create_topic, delete_topic, produce

FIRST = 1_700_000_000_000


def records(count: int, start: int = 0) -> list[Record]:
    """A second apart."""
    return [Record(b"v%d" % n, timestamp=FIRST + 1000 * n) for n in range(start, start + count)]


def windowed(flow: Mirror, group: str = "") -> Opened:
    """One window, measured, and the checkpoints of a group; the flow that moves this group."""
    measure_window(flow.opened, flow.run(), lambda key: True)
    settings = replace(flow.flow.settings, emit_checkpoints_interval_seconds=0, groups=(group or "none",))
    opened = replace(flow.opened, flow=replace(flow.flow, settings=settings))
    do_task(opened, CHECKPOINTS, "checkpoints")
    return opened


def without_source(opened: Opened) -> Opened:
    """The flow when nobody listens at the source's address any more."""
    source = replace(opened.flow.source, bootstrap_servers=(f"{LOOPBACK}:{free_port()}",))
    return replace(opened, flow=replace(opened.flow, source=source))


def levels(plan: FailoverPlan) -> dict[str, str]:
    return {finding.what: finding.level for finding in plan.findings}


def test_a_drained_source_loses_nothing(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    flow, group = mirror(east, west, tmp_path, partitions=2), topic("group")
    produce(east, flow.topic, records(30), partition=0)
    commit(east, group, {(flow.topic, 0): 20})
    plan = failover_plan(windowed(flow, group))
    assert (plan.missing, plan.recovery_ms, plan.source_error) == (0, 0, "")
    assert plan.names == {flow.topic: flow.remote_topic}
    (point,) = plan.groups
    assert (point.group, point.position, point.translation, point.exact, point.again) == (group, 20, 20, True, 0)
    found = levels(plan)
    assert found.pop("there is a reverse flow") == "warn" and set(found.values()) == {"ok"}, plan.findings


def test_what_has_not_been_replicated_is_counted(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    flow, group = mirror(east, west, tmp_path), topic("group")
    produce(east, flow.topic, records(30), partition=0)
    opened = windowed(flow, group)
    produce(east, flow.topic, records(12, 30), partition=0)
    commit(east, group, {(flow.topic, 0): 35})
    plan = failover_plan(opened)
    (point,) = plan.partitions
    assert (point.verified_end, point.committed_end, point.source_end, point.missing) == (30, 30, 42, 12)
    assert point.complete_ms == FIRST + 29_000 and plan.recovery_ms == plan.made_ms - point.complete_ms
    (group_point,) = plan.groups
    assert (group_point.translation, group_point.again) == (30, 5)
    assert (
        levels(plan)["everything is replicated"]
        == levels(plan)["consumer groups resume at the very next record"]
        == "warn"
    )


def test_with_the_source_gone_it_says_what_was_last_seen(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    flow, group = mirror(east, west, tmp_path), topic("group")
    produce(east, flow.topic, records(30), partition=0)
    commit(east, group, {(flow.topic, 0): 20})
    before = time.time() * 1000
    opened = windowed(flow, group)
    produce(east, flow.topic, records(12, 30), partition=0)  # nobody has seen these
    plan = failover_plan(without_source(opened))
    assert "can't be reached" in plan.source_error and plan.drift is None
    (point,) = plan.partitions
    assert (point.source_end, point.missing) == (30, 0)
    assert point.seen_ms is not None and before <= point.seen_ms == point.complete_ms <= plan.made_ms
    assert plan.recovery_ms == plan.made_ms - point.seen_ms and "may be missing" in headline(plan)
    (there,) = plan.groups
    assert (there.position, there.translation, there.exact) == (
        20,
        20,
        True,
    ) and before <= there.seen_ms <= plan.made_ms
    found = levels(plan)
    assert found["the source answers"] == found["their positions are those of now"] == "warn"
    assert found["consumer groups resume at the very next record"] == "ok"
    # A ledger that was made anew knows the target's part, and says what it does not know.
    anew = replace(opened, ledger=Ledger(f"sqlite:///{tmp_path}/anew.db").flow(flow.flow.name))
    again = failover_plan(without_source(anew))
    assert [(each.verified_end, each.source_end, each.complete_ms) for each in again.partitions] == [(30, None, None)]
    assert again.recovery_ms is None and levels(again)["everything is replicated"] == "warn"


def test_what_has_come_to_the_source_while_a_window_follows_counts(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic and a partition that the window does not follow: nothing of them has been replicated since their oldest records."""
    time_is_up, name = ended_by_event(monkeypatch), create_topic(east, topic("orders"))
    flow = mirror(east, west, tmp_path, topic=name, settings=SETTINGS | {"topics": f"{name}.*"})
    produce(east, name, records(30), partition=0)
    new, ledger = f"{name}-new", flow.opened.ledger
    came = {(new, 0): (3, FIRST + 50_000), (name, 1): (4, FIRST + 40_000)}

    def missing() -> dict[tuple[str, int], tuple[int, int | None]]:
        rows = [row for row in ledger.partition_metrics() if row.lag_records]
        return {(row.topic, row.partition): (row.lag_records, complete_ms(row, None)) for row in rows}

    def work() -> None:
        await_verified(flow)
        produce(east, create_topic(east, new), records(3, 50), partition=0)
        create_partitions(connect(flow.flow.source), [NewPartitions(name, 1, 2)])
        for attempt in patiently(KafkaException):
            with attempt:
                produce(east, name, records(4, 40), partition=1)
        for attempt in patiently():
            with attempt:
                assert missing() == came

    by = following_of(flow.opened, Expectations(None, "a test"), window="w")
    result = follow(flow, work, time_is_up, by=by, window="w")
    measure_window(flow.opened, result, lambda key: True)
    assert result.copied == 30 and missing() == came
    for opened in (flow.opened, without_source(flow.opened)):
        plan = failover_plan(opened)
        known = {(each.topic, each.partition): (each.missing, each.complete_ms) for each in plan.partitions}
        assert known.pop((name, 0))[0] == 0 and known == came and plan.missing == 7
        assert (
            plan.recovery_ms == plan.made_ms - (FIRST + 40_000) and plan.names[new] == f"{flow.flow.source.alias}.{new}"
        )
    measure_window(flow.opened, flow.run(), lambda key: True)
    assert not missing() and failover_plan(without_source(flow.opened)).missing == 0


def test_groups_of_other_topics_are_left_out_and_other_topics_of_ours_are_told(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    flow, group, other = mirror(east, west, tmp_path), topic("group"), create_topic(east, topic("other"))
    produce(east, flow.topic, records(10), partition=0)
    commit(east, group, {(flow.topic, 0): 5, (other, 0): 0})
    commit(east, f"{group}-elsewhere", {(other, 0): 0})
    windowed(flow)
    settings = replace(flow.flow.settings, groups=(f"{group}.*",))
    found = failover_plan(replace(flow.opened, flow=replace(flow.flow, settings=settings)))
    assert {point.group for point in found.groups} == {group}
    said = levels(found)
    assert said["all that these groups read is replicated"] == "warn"
    assert said["consumer groups resume at the very next record"] == "ok"


def test_what_is_committed_and_not_verified_is_told(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(10), partition=0)
    prepared = prepare(flow.opened)
    run_window(
        flow.flow,
        flow.opened.ledger,
        prepared.topics,
        in_this_process,
        WindowOrder("w1", slots=lambda _: 1, advance=False),
    )
    plan = failover_plan(flow.opened)
    assert [(point.unverified, point.missing) for point in plan.partitions] == [(10, 10)]
    assert levels(plan)["all that is on the target is verified"] == "warn" and plan.recovery_ms is None
    verify_window(flow.flow, flow.opened.ledger, None, window="w2", trusted={"w1"})
    assert failover_plan(flow.opened).missing == 0


def test_a_remote_topic_that_is_gone_stops(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(10), partition=0)
    opened = windowed(flow)
    delete_topic(west, flow.remote_topic)
    plan = failover_plan(without_source(opened))
    assert levels(plan)["the target still has what was verified"] == "stop"


def test_a_group_with_members_on_the_target_stops(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    flow, group = mirror(east, west, tmp_path), topic("group")
    produce(east, flow.topic, records(10), partition=0)
    commit(east, group, {(flow.topic, 0): 5})
    opened = windowed(flow, group)
    with member(west, group, flow.remote_topic):
        assert levels(failover_plan(opened))["no group is active on the target yet"] == "stop"


def test_a_group_that_uses_another_name_on_the_target_is_told(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    flow, group = mirror(east, west, tmp_path), topic("group")
    produce(east, flow.topic, records(10), partition=0)
    commit(east, group, {(flow.topic, 0): 5})
    create_topic(west, flow.topic)
    commit(west, group, {(flow.topic, 0): 0})
    found = next(each for each in failover_plan(windowed(flow, group)).findings if "use the names" in each.what)
    assert found.level == "warn" and f"{group} reads {flow.topic}, which is {flow.remote_topic}" in found.evidence


def test_a_group_that_is_ahead_on_the_target_stops(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    """It was rewound on the source: what it is to read again it would never read."""
    flow, group, ended = mirror(east, west, tmp_path), topic("group"), topic("ended")
    produce(east, flow.topic, records(30), partition=0)
    commit(east, group, {(flow.topic, 0): 20})
    opened = windowed(flow, group)
    commit(west, group, {(flow.remote_topic, 0): 25})
    for there in (opened, without_source(opened)):
        (point,) = failover_plan(there).groups
        assert (point.translation, point.on_target, point.reason) == (20, 25, Reason.AHEAD)
        assert levels(failover_plan(there))["consumer groups resume at the very next record"] == "stop"
    opened = windowed(flow, ended)
    commit(east, ended, {(flow.topic, 0): 30})
    commit(west, ended, {(flow.remote_topic, 0): 31})  # past the marker alone, as consumers commit that read to the end
    assert levels(failover_plan(opened))["consumer groups resume at the very next record"] == "ok"


def test_nothing_replicated_stops(east: Broker, west: Broker, tmp_path: Path) -> None:
    plan = failover_plan(mirror(east, west, tmp_path).opened)
    assert levels(plan)["something was replicated"] == "stop"


@pytest.mark.parametrize("hostile", ["<img src=x onerror=alert(1)>"])
def test_the_page_escapes_what_others_wrote(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str], hostile: str
) -> None:
    flow, group = mirror(east, west, tmp_path), topic(hostile)
    produce(east, flow.topic, records(10), partition=0)
    commit(east, group, {(flow.topic, 0): 5})
    settings = replace(flow.flow.settings, groups=(".*",))
    windowed(flow)
    plan = failover_plan(replace(flow.opened, flow=replace(flow.flow, settings=settings)))
    assert group in {point.group for point in plan.groups}
    told = shown_plan(plan).as_dict() | {"signer": None}
    text = page(told)
    assert "<img" not in text and "<script" not in text and "&lt;img" in text and "http" not in text
    assert parsed(canonical(told))["asked"] == {"flow": flow.flow.name}

"""The positions of a failover's groups: which count when the source is gone, and which would be left; without brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.clusters.protocol.groups import Committed, Group
from airmirror.config import Flow, parse
from airmirror.ledger import GroupLag
from airmirror.offsets.positions import GroupPosition
from airmirror.offsets.replicated import Extent
from airmirror.offsets.translation import Reason, Translated
from airmirror.partitions import TopicPartition
from airmirror.runbooks.failover import groups
from airmirror.runbooks.failover.groups import kinds_as_last_seen, maybe_streams, rows_as_last_seen, stays
from airmirror.wire.checkpoints import Checkpoint
from airmirror.wire.mappings import MappingRecord, ResetRecord
from airmirror.wire.moves import GroupMove
from support.large import made

FLOW = "clusters = east, west\neast.bootstrap.servers = one:9092\nwest.bootstrap.servers = two:9092\neast->west.enabled = true"
Found = list[tuple[str, str, int, str, object]]


def flow_of(*lines: str) -> Flow:
    return parse("\n".join([FLOW, *(f"east->west.{line}" for line in lines)]), "test").flow("east->west")


def lag(group: str, topic: str, position: int, time_ms: int = 10) -> GroupLag:
    return GroupLag(group, topic, 0, "east", position, lag=0, lag_ms=0, time_ms=time_ms, kind="classic")


def last_seen(
    patch: pytest.MonkeyPatch,
    flow: Flow,
    lags: Sequence[GroupLag],
    checkpoints: Mapping[Checkpoint, int],
    resets: Sequence[ResetRecord] = (),
    brought: Mapping[str, str] | None = None,
) -> Found:
    """What is known of groups by lags and by checkpoints, each with when it was written: group, topic, position, the target's
    name of the topic, and the translation. The flow has copied ``orders``; ``brought``: what the reverse flow has, as the ledger
    knows it."""
    ours = {("orders", 0): made(MappingRecord, topic="orders", remote_topic="east.orders")}
    its = [made(MappingRecord, topic=topic, remote_topic=name) for topic, name in (brought or {}).items()]
    index = SimpleNamespace(
        group_lags=lambda: lags,
        resets=lambda: resets,
        owners=lambda: SimpleNamespace(is_apart=lambda topic: False),
        last_mappings=lambda: ours,
        checkpoints=lambda: {each.key: each for each in checkpoints},
        checkpoint_times=lambda: {each.key: time_ms for each, time_ms in checkpoints.items()},
        other=lambda name: SimpleNamespace(last_mappings=lambda: {(each.topic, 0): each for each in its}),
    )
    target = SimpleNamespace(refresh_existing=lambda topics: {}, has=lambda key: key.topic != "gone")
    journal: Any = SimpleNamespace(flow=flow, target=target, index=index)
    patch.setattr(groups, "load_written", lambda *_, **__: None)
    patch.setattr(groups, "extents", lambda routes, keys: {key: Extent(0, 50) for key in keys if key.topic != "gone"})
    patch.setattr(groups, "positions_without_source", lambda _, committed: [*_translated(committed)])
    rows, seen = rows_as_last_seen(journal)
    assert seen.keys() >= {(row.group, row.key) for row in rows}
    assert set(kinds_as_last_seen(journal)) <= {"classic"}
    return [(row.group, row.topic, row.committed.offset, row.remote_topic, row.found) for row in rows]


def _translated(committed: Mapping[str, Mapping[TopicPartition, Committed]]) -> Any:
    for group, offsets in committed.items():
        for key, each in offsets.items():
            is_ours = key.topic == "orders"
            found = Translated(each.offset, each.offset) if is_ours else Reason.NOT_REPLICATED
            yield GroupPosition(group, *key, each, "east.orders" if is_ours else "", found)


def test_a_group_that_is_excluded_since_keeps_no_failover_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its consumers may be at work on the target, and groups.exclude is how it is left out."""
    lags = [lag("billing", "orders", 5), lag("audit", "orders", 7)]
    found = last_seen(
        monkeypatch, flow_of("groups.exclude = audit"), lags, {Checkpoint("audit", "east.orders", 0, 9, 9): 20}
    )
    assert found == [("billing", "orders", 5, "east.orders", Translated(5, 5))]


def test_what_was_seen_of_a_topic_before_it_was_created_again_is_of_the_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The new topic has other records at these offsets."""
    lags = [lag("old", "orders", 5, 10), lag("new", "orders", 2, 40)]
    checkpoints = {Checkpoint("old", "east.orders", 0, 9, 9): 20, Checkpoint("newer", "east.orders", 0, 3, 3): 30}
    reset = made(
        ResetRecord, topic="orders", partition=0, time_ms=30, problem="the source topic was created again; more"
    )
    other = made(ResetRecord, topic="orders", partition=0, time_ms=35, problem="the remote topic was created again")
    found = last_seen(monkeypatch, flow_of(), lags, checkpoints, [reset, other])
    assert [(group, position) for group, _, position, *_ in found] == [("new", 2), ("newer", 3)]
    assert len(last_seen(monkeypatch, flow_of(), lags, checkpoints, [other])) == 3


def test_positions_in_topics_that_came_from_the_target_are_where_checkpoints_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Active/active: a consumer reads the topics of both clusters. What no checkpoint tells is named."""
    ours = lag("billing", "orders", 5)
    lags = [ours, lag("billing", "west.stock", 1), lag("other", "west.stock", 1)]
    told = Checkpoint("billing", "payments", 0, 30, 28)
    others = {
        Checkpoint("billing", "east.old", 0, 9, 9): 20,  # came from the source, before its topic was reset
        Checkpoint("billing", "gone", 0, 9, 9): 20,
        Checkpoint("billing", "scratch", 0, 9, 9): 20,
    }
    found = last_seen(monkeypatch, flow_of("topics.exclude = west.scratch"), lags, {told: 20} | others)
    assert found == [
        ("billing", "orders", 5, "east.orders", Translated(5, 5)),
        ("billing", "west.payments", 30, "payments", Translated(30, 28, exact=False)),
        ("billing", "west.stock", 1, "", Reason.NOT_REPLICATED),
    ], "and nothing of who reads nothing of the flow's"
    for position, moves in ((31, True), (29, False)):  # since the checkpoint: a group that was rewound skips nothing
        found = last_seen(monkeypatch, flow_of(), [ours, lag("billing", "west.payments", position, 30)], {told: 20})
        assert isinstance(found[1][4], Translated) is moves
    longer = Checkpoint("billing", "payments", 0, 90, 88)
    assert last_seen(monkeypatch, flow_of(), [], {longer: 20})[0][4] == Reason.BEYOND_TARGET
    aggregate = flow_of("aggregate = true")
    assert last_seen(monkeypatch, aggregate, [], {told: 20})[0][4] == Reason.AGGREGATE


def test_where_names_are_kept_only_a_ledger_knows_what_came_from_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    flow, told = (
        flow_of("replication.policy.class = IdentityReplicationPolicy"),
        Checkpoint("billing", "payments", 0, 30, 28),
    )
    assert last_seen(monkeypatch, flow, [], {told: 20}) == []
    found = last_seen(monkeypatch, flow, [], {told: 20}, brought={"payments": "payments"})
    assert found == [("billing", "payments", 30, "payments", Translated(30, 28, exact=False))]


def row(translation: int = 20, *, start: int = 0, target_start: int = 0) -> GroupPosition:
    """A group at 20 on the source, whose logs begin there."""
    found, logs = Translated(20, translation), (Extent(start, 30), Extent(target_start, 31))
    return GroupPosition("billing", "orders", 0, Committed(20), "east.orders", found, *logs)


@pytest.mark.parametrize(
    ("given", "stands", "state", "moved_to", "back", "reason"),
    [
        pytest.param(row(), 20, "Empty", None, None, "", id="in its place"),
        pytest.param(row(), 25, "Empty", None, 24, Reason.AHEAD, id="rewound on the source"),
        pytest.param(row(), 25, "Empty", None, None, Reason.AHEAD, id="and nobody knows how far"),
        pytest.param(row(), 21, "Empty", None, 20, "", id="past a marker alone"),
        pytest.param(row(), 25, "Empty", 20, 24, "", id="moved there, and read on"),
        pytest.param(row(), 25, "Empty", 25, 24, Reason.AHEAD, id="moved there, and rewound since"),
        pytest.param(row(), 25, "Empty", -1, 24, Reason.AHEAD, id="left there"),
        pytest.param(row(), 25, "Stable", None, 24, "", id="its members can stop"),
        pytest.param(row(target_start=22), None, "Empty", None, None, Reason.BELOW_START, id="deleted on the target"),
        pytest.param(row(start=25, target_start=22), None, "Empty", None, None, "", id="deleted on both"),
        pytest.param(row(target_start=22), 25, "Empty", 20, None, "", id="deleted behind who has read on"),
    ],
)
def test_who_would_be_left(
    given: GroupPosition,
    stands: int | None,
    state: str,
    moved_to: int | None,
    back: int | None,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``stands``: on the target, which is ``back`` on the source (None: not known). ``moved_to``: by an order, None: by none."""
    move = GroupMove("billing", "east.orders", 0, "move-shop", -1, moved_to or 0, 0, "")
    journal: Any = SimpleNamespace(index=SimpleNamespace(of_kind=lambda _: [] if moved_to is None else [move]))

    def on_source(_: object, committed: Mapping[str, Any], names: Mapping[str, str]) -> list[GroupPosition]:
        assert committed == {"billing": {given.remote: Committed(stands or 0)}} and names == {"orders": "east.orders"}
        found = Reason.RECREATED if back is None else Translated(0, back)
        return [GroupPosition("billing", *given.remote, Committed(0), "orders", found)]

    monkeypatch.setattr(groups, "positions_on_source", on_source)
    at = {} if stands is None else {"billing": {given.remote: Committed(stands)}}
    assert stays(journal, [given], {"billing": Group("billing", state)}, at) == [reason]


def test_who_may_be_a_streams_group_is_named_where_only_checkpoints_tell_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not who was seen, even by a broker that names no kind; who is named, or is on the target, where nothing is made."""
    kinds = {"classic": "classic", "counts": "", "named": "", "old": "", "there": ""}
    rows = [replace(row(), group=group, kind=kind) for group, kind in kinds.items()]
    monkeypatch.setattr(groups, "list_groups", lambda _: {"there": Group("there", "Empty", "classic")})
    index = SimpleNamespace(group_lags=lambda: [replace(lag("old", "orders", 5), kind="")])
    for lines, may_break, found in (
        ((), True, ["counts"]),
        ((), False, []),
        (("streams.groups.ahead.allowed = true",), True, []),
    ):
        monkeypatch.setattr(groups, "may_break", lambda _, may_break=may_break: may_break)
        flow = flow_of("streams.applications = named", *lines)
        journal: Any = SimpleNamespace(flow=flow, index=index, target=None)
        assert maybe_streams(journal, rows) == found

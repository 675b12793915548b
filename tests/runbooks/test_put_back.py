"""Groups that an undo puts back, and what a cluster answers; without brokers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.clusters.protocol.groups import Committed
from airmirror.flows.freezing import failed_over
from airmirror.offsets.groups import plan
from airmirror.offsets.positions import GroupPosition
from airmirror.offsets.translation import Reason, Translated
from airmirror.partitions import TopicPartition
from airmirror.runbooks import moving
from airmirror.runbooks.failback import unfreezing
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.pair import moved_by
from airmirror.runbooks.moving import GroupsActive, PositionsRefused, PutBack, put_back
from airmirror.runbooks.shown import put_back_section, shown_undo
from airmirror.wire.moves import GroupMove

KEY = TopicPartition("east.orders", 0)


def moved(before: int, now: int) -> PutBack:
    """A group that was moved to 9."""
    return PutBack(GroupMove("billing", *KEY, "failover-x", before, 9, 1, ""), now, "Empty", "west")


def writer(
    errors: Mapping[tuple[str, TopicPartition], int], monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, list[object]]:
    """Who puts back on a cluster that answers ``errors`` to what is written and deleted, and what it has written."""
    written = list[object]()

    def answers(_: object, groups: Mapping[str, Collection[TopicPartition]]) -> dict[tuple[str, TopicPartition], int]:
        return {(group, key): code for (group, key), code in errors.items() if key in groups.get(group, ())}

    monkeypatch.setattr(moving, "commit_offsets", lambda *asked: written.append(asked[1]) or answers(*asked))
    monkeypatch.setattr(moving, "delete_offsets", answers)
    journal = SimpleNamespace(target=SimpleNamespace(alias="west"), flow=SimpleNamespace(name="east->west"))
    return SimpleNamespace(journal=journal, check=lambda: None, write=written.append), written


def test_a_right_that_is_missing_is_not_told_as_a_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who stood nowhere has a position deleted: that takes a right that no window needs, and nobody can stop a consumer."""
    denied, written = writer({("billing", KEY): 30}, monkeypatch)
    with pytest.raises(
        PositionsRefused, match=r"'west'.* Delete (.|\n)*billing in east\.orders-0: GROUP_AUTHORIZATION_FAILED"
    ):
        put_back(denied, [moved(-1, 9)])
    for active in (68, 86):
        joined, _ = writer({("billing", KEY): active}, monkeypatch)
        with pytest.raises(GroupsActive, match="billing") as refused:
            put_back(joined, [moved(-1, 9)])
        assert "no group was moved" not in str(refused.value)  # others may have been put back
    assert written == [{}]  # and no move was forgotten


def test_a_position_that_is_not_taken_is_told_as_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """No right lets a broker keep metadata that is too long for it."""
    for code, is_denied in ((29, True), (30, True), (31, True), (12, False)):
        refuses, written = writer({("billing", KEY): code}, monkeypatch)
        with pytest.raises(PositionsRefused, match=rf"billing in east\.orders-0: \w+ \({code}\)") as refused:
            put_back(refuses, [moved(5, 9)])
        assert ("grant" in str(refused.value)) is is_denied
        assert written == [{"billing": {KEY: Committed(5)}}]


def test_a_topic_that_is_gone_keeps_no_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing stands in it, and nothing can: what was in others goes back, and the next undo finds nothing."""
    other = PutBack(replace(moved(5, 9).move, partition=1), 9, "Empty", "west")
    for gone in (moved(5, -1), moved(-1, 9)):
        there, written = writer({("billing", KEY): 3}, monkeypatch)
        assert put_back(there, [gone, other]) == [other]
        assert written[-1] == [(each.move.encode_key(), None) for each in (gone, other)]


def test_a_group_that_stands_in_place_already_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a synchronisation has left it: who reads on from there can't be undone any more. Who does not, is not put back."""
    row = GroupPosition("billing", "orders", 0, Committed(8), "east.orders", Translated(8, 9))
    at = {"billing": {KEY: Committed(9, "note")}}
    journal = SimpleNamespace(index=SimpleNamespace(of_kind=lambda _: []))
    asked: Any = SimpleNamespace(journal=journal, window="failover-x")
    (move,) = moving._remembered(asked, plan([row], {}, at), [row], at)
    assert (move.before, move.after, move.metadata_before) == (9, 9, "note")
    stays, read_on = PutBack(move, 9, "Empty", "west", "note"), PutBack(move, 12, "Empty", "west")
    assert not stays.why_not and "has committed 12 since" in read_on.why_not
    assert replace(stays, state="Stable").why_not == "billing in east.orders-0: it has members on cluster 'west'"
    there, written = writer({}, monkeypatch)
    put_back(there, [stays])
    assert written == [{}, [], [(move.encode_key(), None)]]
    assert [each["group"] for each in put_back_section([stays, moved(5, 9)]).rows] == ["billing"]


def test_a_group_that_was_left_is_remembered_and_may_not_have_consumed_there() -> None:
    """It begins on the target by auto.offset.reset; one that an order has moved before stays as that order has found it."""
    row, known = (
        GroupPosition("billing", "orders", 0, Committed(8), "east.orders", Reason.NOT_COVERED),
        list[GroupMove](),
    )
    journal = SimpleNamespace(index=SimpleNamespace(of_kind=lambda _: known))
    asked: Any = SimpleNamespace(journal=journal, window="failover-x")
    (move,) = moving._remembered(asked, plan([row], {}, {}), [row], {})
    assert (move.before, move.after) == (-1, -1)
    assert not PutBack(move, -1, "Empty", "west").why_not
    assert PutBack(move, 3, "Empty", "west").why_not.endswith("it was left where it stood and has committed 3 since")
    unknown, shared = (replace(row, **each) for each in ({"remote_topic": ""}, {"found": Reason.AGGREGATE}))
    assert moving._remembered(asked, plan([unknown, shared], {}, {}), [unknown, shared], {}) == []
    known.append(replace(move, after=9))
    assert moving._remembered(asked, plan([row], {}, {}), [row], {}) == []


def test_the_undo_of_a_failback_takes_in_what_the_flow_has_moved_besides() -> None:
    """In topics that came from the target; not by an order for some topics, nor once nothing returns."""
    state = SimpleNamespace(known=[("orders", 0), ("bills", 0)])
    pair: Any = SimpleNamespace(forward=SimpleNamespace(ledger=SimpleNamespace(state=lambda: state)))
    places = [("orders", "return-x"), ("bills", "return-x"), ("west.stock", "return-x"), ("west.stock", "move-shop")]
    every = [GroupMove("billing", topic, 0, window, 5, 9, 1, "") for topic, window in places]
    for names, topics, taken in (
        ({"east.orders": "orders"}, (), [every[0], every[2]]),
        ({"east.orders": "orders"}, ("orders",), every[:1]),
        ({}, (), []),
    ):
        assert list(filter(moved_by(pair, names, topics), every)) == taken


def test_an_unfreezing_forgets_where_a_failover_found_groups() -> None:
    """Of the flow in topics that came from the target too; never what a migration has moved."""
    places = [("east.orders", "failover-x"), ("east.orders", "move-shop"), ("stock", "failover-x")]
    every = [GroupMove("billing", topic, 0, window, 5, 9, 1, "") for topic, window in places]
    mappings = {"orders": SimpleNamespace(topic="orders", remote_topic="east.orders")}
    ledger: Any = SimpleNamespace(of_kind=lambda _: every, last_mappings=lambda: mappings)
    assert failed_over(ledger) == [every[0], every[2]] and failed_over(ledger, ["orders"]) == every[:1]


def test_a_failback_of_the_flow_forgets_where_its_failover_found_groups() -> None:
    """In topics that came from the target too. Done for some topics, or moved by a migration, others stay remembered."""
    keys = [
        ("east.orders", "failover-x"),
        ("stock", "failover-x"),
        ("stock", "move-shop"),
        ("east.bills", "failover-x"),
    ]
    every = [GroupMove("billing", topic, 0, window, 5, 9, 1, "") for topic, window in keys]
    mappings = {topic: SimpleNamespace(topic=topic, remote_topic=topic) for topic in ("east.orders", "east.bills")}
    for topics, forgotten in (((), {"east.orders", "stock"}), (("orders",), {"east.orders"})):
        for moves in (every[:2] + every[3:], every[:1] + every[2:]):
            ledger: Any = SimpleNamespace(of_kind=lambda _, its=moves: its, last_mappings=lambda: mappings)
            order = FailbackOrder(reason="INC-7", by="ada", topics=topics)
            is_ours = any(each.topic == "stock" and each.window == "failover-x" for each in moves)
            found = {each.topic for each in unfreezing._over(ledger, {"east.orders"}, order)}
            assert found == (forgotten if is_ours else {"east.orders"})


def test_a_position_that_has_expired_meanwhile_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """No consumer has committed -1. What it has read there nobody knows: it is named, and no mark of a cut-over is."""
    expired, (there, written) = moved(5, -1), writer({}, monkeypatch)
    assert not expired.why_not and "has committed 12 since" in moved(5, 12).why_not
    put_back(there, [expired])
    assert [each for each in written if each] == [{"billing": {KEY: Committed(5)}}, [(expired.move.encode_key(), None)]]
    mark = replace(expired, move=replace(expired.move, after=-1))
    (found,) = shown_undo("failover", "east->west", "", (), "", [], [moved(5, 9), expired, mark]).findings
    assert found.level == "warn" and found.evidence.endswith("is read again: billing in east.orders-0")

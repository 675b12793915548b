"""What says that a group was cut over: of each group that it was, after where it stood, and no longer than that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.clusters.protocol.groups import Committed
from airmirror.ledger import Ledger
from airmirror.partitions import Entry, TopicPartition
from airmirror.runbooks import moving
from airmirror.runbooks.migration import carrying, consumers
from airmirror.runbooks.migration.chosen import Move
from airmirror.runbooks.moving import MappingWriter, forget, moved_again, put_back, remember, to_put_back
from airmirror.wire.moves import GroupMove
from ledger.test_ledger import load
from support.migrations import ORDER

MOVE = Move("shop", {"orders": "east.orders"}, ("first", "later"), None)
KEYS = [TopicPartition("east.orders", number) for number in range(2)]
WEST = SimpleNamespace(alias="west")


def mark(group: str) -> GroupMove:
    return GroupMove(group, ORDER.window, -1, ORDER.window, before=-1, after=-1, time_ms=0, metadata_before="")


def stood(group: str, number: int, before: int, after: int = -1) -> GroupMove:
    return GroupMove(group, *KEYS[number], ORDER.window, before=before, after=after, time_ms=0, metadata_before="")


class Log:
    """A mapping topic that holds these records; what is appended to it since, as one batch each."""

    def __init__(self, *records: GroupMove) -> None:
        self.records, self.batches = records, list[list[bytes]]()
        self.journal: Any = SimpleNamespace(source="east", target=WEST, catch_up=lambda: None, index=self)
        appender: Any = self
        self.writer = MappingWriter(self.journal, appender, ORDER.window)

    def of_kind(self, kind: type[GroupMove]) -> list[GroupMove]:
        return list(self.records)

    def append(self, records: list[tuple[bytes, bytes | None]]) -> None:
        self.batches.append([key for key, _ in records])


@pytest.fixture
def groups_on_west(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[TopicPartition, Committed]]:
    """Where groups stand on the target; on the source they stand nowhere."""
    found = dict[str, dict[TopicPartition, Committed]]()
    for module in (moving, carrying, consumers):
        monkeypatch.setattr(
            module,
            "stable_offsets",
            lambda cluster, groups, _: {name: found.get(name, {}) for name in groups} if cluster == WEST else {},
        )
    for module in (moving, carrying):
        monkeypatch.setattr(module, "list_groups", lambda _: {})
    monkeypatch.setattr(carrying, "positions_on_source", lambda *_: [])
    return found


def test_a_group_that_came_after_a_cut_over_has_nothing_new(
    groups_on_west: dict[str, dict[TopicPartition, Committed]],
) -> None:
    """Of the first one it is known where it stood: what else it has there, it has committed since."""
    groups_on_west |= {"first": {KEYS[0]: Committed(9), KEYS[1]: Committed(2)}, "later": {KEYS[1]: Committed(3)}}
    log = Log(stood("first", 0, 4, 9), mark("first"))
    found = carrying.going_back(log.journal, MOVE, ORDER)
    assert {(each.move.group, each.move.key, each.move.before) for each in found.groups if not each.move.is_mark} == {
        ("first", KEYS[0], 4),
        ("first", KEYS[1], -1),
    }
    assert found.names == {"first"}


def test_a_cut_over_says_of_each_group_once_where_it_stands(
    groups_on_west: dict[str, dict[TopicPartition, Committed]],
) -> None:
    """And returns what it writes again if an undo has forgotten it meanwhile: nothing of a group that it does not move."""
    groups_on_west |= {"first": {KEYS[0]: Committed(9), KEYS[1]: Committed(2)}, "later": {KEYS[1]: Committed(3)}}
    log = Log(stood("first", 0, 4, 9), mark("first"))
    found = consumers.remember_cut_over(log.writer, MOVE, {"later"})
    assert log.batches == [[stood("later", 1, 3).encode_key()], [mark("later").encode_key()]]
    assert [(each.group, each.partition, each.before) for each in found] == [("later", 1, 3), ("later", -1, -1)]
    again = Log(*log.records, *found)
    assert consumers.remember_cut_over(again.writer, MOVE, {"first"}) == list(log.records)
    assert again.batches == []


def test_whoever_is_killed_has_not_said_that_where_a_group_stood_is_new() -> None:
    log, known = Log(), (mark("first"), stood("first", 0, 4))
    its, where = (each.encode_key() for each in known)
    remember(log.writer, known)
    assert log.batches == [[where], [its]]
    forget(log.writer, known[::-1])
    assert log.batches[2:] == [[its], [where]]


@pytest.mark.usefixtures("groups_on_west")
@pytest.mark.parametrize("name", ["g" * 600, "a\0b"])
def test_an_undo_ends_where_a_group_has_a_name_that_no_ledger_can_keep(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record of it could be written, and not be deleted again."""
    for asks in ("commit_offsets", "delete_offsets"):
        monkeypatch.setattr(moving, asks, lambda *_: {})
    with Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        index, written = ledger.flow("east->west"), list[Entry]()
        journal: Any = SimpleNamespace(source="east", target=WEST, catch_up=lambda: None, index=index)

        def append(records: Sequence[tuple[bytes, bytes | None]]) -> None:
            new = [Entry(0, len(written) + number, 0, key, value) for number, (key, value) in enumerate(records)]
            written.extend(new)
            load(index, new)

        appender: Any = SimpleNamespace(append=append)
        writer = MappingWriter(journal, appender, ORDER.window)
        consumers.remember_cut_over(writer, Move("shop", MOVE.names, ("first", name), None), ())
        rows = to_put_back(journal, lambda _: True)
        put_back(writer, rows)
        assert [row.name for row in rows] == ["first"] and moved_again(journal, lambda _: True, rows) == []

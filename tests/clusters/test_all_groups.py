"""Groups that no broker lists are missed: where one of their partitions is not served."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.clusters.protocol import stable
from airmirror.clusters.protocol.groups import Group, GroupsNotRead
from airmirror.clusters.protocol.routes import CoordinatorNotAvailable, TopicNotDescribed, TopicNotFound
from airmirror.clusters.protocol.stable import all_groups, in_each_partition
from airmirror.runbooks.migration.consumers import with_members


def partition_of(group: str, partitions: int) -> int:
    """As Kafka has it (GroupCoordinatorService.partitionFor): String.hashCode, an int of Java."""
    value = 0
    for character in group:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return abs(value - (value >> 31 << 32)) % partitions


@pytest.mark.parametrize("partitions", [1, 4, 50, 200, 999])
def test_a_group_is_asked_for_in_each_partition(partitions: int) -> None:
    names = in_each_partition(partitions)
    assert {partition_of(name, partitions) for name in names} == set(range(partitions)) and len(names) == partitions


@pytest.mark.parametrize(
    ("missing", "asked"), [(None, 7), (TopicNotDescribed("east", "o"), 200), (TopicNotFound("east", "o"), 0)]
)
def test_groups_are_all_listed_only_when_all_partitions_are_served(
    monkeypatch: pytest.MonkeyPatch, missing: TopicNotFound | None, asked: int
) -> None:
    """Nothing is asked for where the topic isn't there: the broker would make it."""
    monkeypatch.setattr(stable, "KNOWN_SECONDS", 0.1)
    names, given = list[str](), {} if missing is None else {"__consumer_offsets": missing}
    routes: Any = SimpleNamespace(refresh_existing=lambda _: given, partitions=lambda _: 7 if missing is None else 0)
    monkeypatch.setattr(stable, "committed_offsets", lambda _, given: names.extend(given))
    monkeypatch.setattr(stable, "list_groups", lambda _: {"g": Group("g", "Empty")} if len(names) == asked else {})
    assert all_groups(routes).keys() == {"g"}

    def refuse(*_: object) -> None:
        raise GroupsNotRead("east", "asked", 30)

    monkeypatch.setattr(stable, "committed_offsets", refuse)
    assert all_groups(routes).keys() == {"g"}, "who may describe some groups only moves these"


def test_a_group_whose_coordinator_is_away_does_not_count_as_one_without_members(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Producers are cut over when no group has members on the source any more."""

    def away(*_: object) -> None:
        raise CoordinatorNotAvailable("east", "asked", 15, "COORDINATOR_NOT_AVAILABLE")

    routes: Any = SimpleNamespace(refresh_existing=lambda _: {}, partitions=lambda _: 4)
    listed = {"read": Group("read", "Stable"), "idle": Group("idle", "Empty")}
    monkeypatch.setattr(stable, "list_groups", lambda _: listed)
    monkeypatch.setattr(stable, "committed_offsets", lambda *_: {})
    assert with_members(routes, ["idle", "read", "gone"]) == ["read"]
    monkeypatch.setattr(stable, "committed_offsets", away)
    with pytest.raises(CoordinatorNotAvailable):
        with_members(routes, ["gone"])

"""What a cut-over looks at last: groups that are read on or lost while they are moved, and each partition of each topic."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from airmirror.flows.freezing import freeze, owners_now
from airmirror.runbooks.draining import NotDrained
from airmirror.runbooks.migration import consumers, producers
from airmirror.runbooks.migration.consumers import GroupsHaveMembers, GroupsNotMoved
from airmirror_local.brokers import Broker
from support.flows import Mirror
from support.following import numbered
from support.groups import commit, member
from support.migrations import moving, takes
from support.topics import assert_mirrored, produce


@pytest.fixture
def flow(east: Broker, west: Broker, tmp_path: Path) -> Mirror:
    """A flow whose move group has copied its records."""
    flow, _ = moving(east, west, tmp_path)
    produce(east, flow.topic, numbered(30), partition=0)
    return flow


@pytest.fixture
def group(flow: Mirror) -> str:
    """A group that stands at offset 10 on the source."""
    group = f"g-{uuid4().hex[:8]}"
    commit(flow.source, group, {(flow.topic, 0): 10})
    return group


def after_positions_are_written(monkeypatch: pytest.MonkeyPatch, do: Any) -> None:
    real = consumers.move_groups

    def written(*given: Any, **named: Any) -> Any:
        done = real(*given, **named)
        do()
        return done

    monkeypatch.setattr(consumers, "move_groups", written)


def test_a_position_that_the_target_did_not_keep_is_named(
    flow: Mirror, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = flow.remote_topic, 0
    after_positions_are_written(monkeypatch, lambda: commit(flow.target, group, {key: 9}))
    with pytest.raises(GroupsNotMoved, match=f"{group} in {flow.remote_topic}-0 is not at 10, but at 9"):
        takes(flow.opened, "cut_over_consumers")


def test_a_position_whose_metadata_the_target_did_not_keep_is_named(
    flow: Mirror, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(flow.source, group, {(flow.topic, 0): 10}, "mine")
    key = flow.remote_topic, 0
    after_positions_are_written(monkeypatch, lambda: commit(flow.target, group, {key: 10}))
    with pytest.raises(GroupsNotMoved, match=f"{group} in {flow.remote_topic}-0 is at 10 without its metadata"):
        takes(flow.opened, "cut_over_consumers")


def test_a_group_that_reads_on_while_it_is_moved_is_named(
    flow: Mirror, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_positions_are_written(monkeypatch, lambda: commit(flow.source, group, {(flow.topic, 0): 12}))
    with pytest.raises(GroupsNotMoved, match=f"{group} in {flow.topic}-0 at 12 by now on the source"):
        takes(flow.opened, "cut_over_consumers")


def test_a_group_that_comes_back_while_it_is_moved_is_named(
    flow: Mirror, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as back:
        after_positions_are_written(monkeypatch, lambda: back.enter_context(member(flow.source, group, flow.topic)))
        with pytest.raises(GroupsHaveMembers, match=f"{group}: rdkafka at 127.0.0.1"):
            takes(flow.opened, "cut_over_consumers")


def test_each_partition_of_each_topic_is_looked_at_last_and_frozen(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, other = moving(east, west, tmp_path, partitions=2, move_shop_topics=".*")
    keys = [(topic, number) for topic in (flow.topic, other) for number in (0, 1)]
    for topic, number in keys:
        produce(east, topic, numbered(5), partition=number)
    prove = producers.prove_past
    for topic, number in keys:

        def prove_and_write(*given: Any, topic: str = topic, number: int = number) -> None:
            prove(*given)
            produce(east, topic, numbered(1, 5), partition=number)

        monkeypatch.setattr(producers, "prove_past", prove_and_write)
        with pytest.raises(NotDrained, match=f"{topic}-{number}: verified up to 5, the source ends at 6"):
            takes(flow.opened, "cut_over_producers")
        assert owners_now(flow.opened).frozen == {}
    monkeypatch.undo()
    assert flow.run().is_verified
    freeze(flow.opened, [flow.topic], reason="this one first", by="ada")
    takes(flow.opened, "cut_over_producers")
    assert owners_now(flow.opened).frozen.keys() == {flow.topic, other}
    for topic in (flow.topic, other):
        assert assert_mirrored(east, topic, west, f"{flow.flow.source.alias}.{topic}") == 12

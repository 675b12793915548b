"""What a slot has known and is gone: the addresses of a cluster's names, which come back, topics, and leaders."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from airmirror.clusters.protocol.routes import Leader, Routes, TopicNotFound
from airmirror.clusters.protocol.transactions import TransactionalId
from airmirror.partitions import TopicPartition
from airmirror.slot import attempts
from airmirror.slot.attempts import _Attempts, _usable, run_slot
from airmirror.slot.contract import Outcome
from airmirror.slot.errors import TopicRecreated
from airmirror.windows import judging
from airmirror.windows.judging import watermarks
from support.intakes import intake


@pytest.mark.parametrize("is_reached", [True, False])
def test_a_slot_waits_for_names_that_it_has_known(is_reached: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it has never reached the cluster, the name is wrong where the slot runs: that does not pass."""

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    tried: list[str] = []

    def attempt(*, source: Routes, **_: Any) -> bool:
        tried.append(source.alias)
        if len(tried) == 1 and is_reached:
            source.cluster_id = "answered"
        if len(tried) < 3:
            source.refresh([])
        return True

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr(attempts, "_attempt", attempt)
    monkeypatch.setattr(attempts, "LEAST_PAUSE", 0.0)
    (result,) = run_slot(replace(intake(10)[0].context.slot, max_ms=60_000))
    assert len(tried) == (3 if is_reached else 1)
    assert (result.outcome is Outcome.FAILED) is not is_reached


@pytest.mark.parametrize("alias", ["east", "west"])
def test_topics_that_are_gone_are_left_out_together(alias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of hundreds was awaited for seconds, in an attempt of its own, however late it was."""
    begun: list[str] = []

    class Gone(Routes):
        def _read(self, topics: Iterable[str] | None) -> dict[str, TopicNotFound]:
            of_partitions = {name for name in topics or () if "orders" in name and self.alias == alias}
            return {name: TopicNotFound(alias, name) for name in of_partitions}

    class NoLog:
        age, held, is_ending, look = 0.0, frozenset[object](), False, None

        def __init__(self, _slot: object) -> None:
            pass

        def committed(self, _target: object) -> dict[object, object]:
            begun.append("an attempt")
            return {}

    monkeypatch.setattr(attempts, "Routes", Gone)
    monkeypatch.setattr(attempts, "LeaseLog", NoLog)
    monkeypatch.setattr(attempts, "KNOWN_SECONDS", 0.05)
    monkeypatch.setattr(TransactionalId, "initialise", lambda *_: None)
    slot = intake(10)[0].context.slot
    one = slot.partitions[0]
    many = tuple(replace(one, topic=f"orders{n}", remote_topic=f"east.orders{n}") for n in range(20))
    results = run_slot(replace(slot, max_ms=60_000, partitions=many))
    assert len(begun) == 2, "one that finds out, and one without them"
    assert {(each.outcome, "has no topic" in str(each.error)) for each in results} == {(Outcome.FAILED, True)}


def test_a_partition_of_the_source_that_loses_its_leader_is_left_out_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its slot's others were not copied either until the window's end: no fetch can be sent where a leader is not known."""
    monkeypatch.setattr(attempts, "LEADER_SECONDS", 0.05)
    monkeypatch.setattr(attempts, "unwritable", lambda *_: {})
    monkeypatch.setattr(attempts, "look", lambda *_: ({}, {}))
    monkeypatch.setattr(Routes, "refresh", lambda *_: None)
    slot = intake(10)[0].context.slot
    one = slot.partitions[0]
    two = replace(one, partition=1)
    with Routes(slot.flow.source, "test") as source, Routes(slot.flow.target, "test") as target:
        source.topic_ids[one.topic], target.topic_ids[one.remote_topic] = one.source_topic_id, one.target_topic_id
        source._nodes = {1: ("broker", 9092)}
        source._leaders = {one.key: Leader(1, 0), two.key: Leader(-1, 0)}
        source._errors = {one.key: 0, two.key: 5}
        found = _Attempts.of(slot)
        assert [each.key for each, _ in _usable(slot, source, target, found, [(one, 10), (two, 10)])] == [one.key]
    [(left_out, error)] = found.failed.items()
    assert left_out == two.key and error.transient and "no leader" in str(error)


def test_the_lag_of_the_others_is_known_where_a_partition_is_gone_or_loses_its_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The whole window failed, and nothing of the others was verified while the partition had no leader."""
    led, unled, late, gone = (TopicPartition(topic, 0) for topic in ("orders", "unled", "late", "gone"))

    def asked(source: Routes, partitions: Iterable[TopicPartition], _at: int) -> dict[TopicPartition, int]:
        if late in partitions:  # its metadata is read again meanwhile
            source._leaders[late] = Leader(-1, 0)
        return {key: source.leader(key).node for key in partitions}

    monkeypatch.setattr(judging, "offsets_with_patience", asked)
    with Routes(intake(10)[0].context.slot.flow.source, "test") as source:
        source._nodes = {1: ("broker", 9092)}
        source._leaders = {led: Leader(1, 0), unled: Leader(-1, 0), late: Leader(1, 0), gone: Leader(1, 0)}
        source._errors = dict.fromkeys(source._leaders, 5)
        source._partitions = {"orders": 1, "unled": 1, "late": 1}
        assert watermarks(source, [led, unled, late, gone]) == {led: 1}


def test_a_topic_that_was_made_again_with_fewer_partitions_is_another_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the partitions that it lacks, only what becomes of the topic helps: its reset. All is said in one attempt."""
    monkeypatch.setattr(attempts, "unwritable", lambda *_: {})
    monkeypatch.setattr(attempts, "look", lambda *_: ({}, {}))
    slot = intake(10)[0].context.slot
    one = slot.partitions[0]
    three = [(replace(one, partition=number), 10) for number in range(3)]
    with Routes(slot.flow.source, "test") as source, Routes(slot.flow.target, "test") as target:
        source.topic_ids[one.topic], target.topic_ids[one.remote_topic] = uuid.uuid4(), one.target_topic_id
        found = _Attempts.of(slot)
        assert _usable(slot, source, target, found, three) == []
    assert [type(error) for error in found.failed.values()] == [TopicRecreated] * 3

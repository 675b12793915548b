"""A fault counts as one that happened only if it has befallen something: each asks what it has done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest
from kafka.structs import TopicPartition

from airmirror_local.proxy import Exchange, Proxy
from chaos import moves
from chaos.clusters import Clusters
from chaos.moves import Missed, Moves
from chaos.plan import Fault, upgrading

NONE: Any = None
KEY = TopicPartition("remote", 0)
ANY = Exchange(api_key=1, api_version=0, correlation_id=0, number=1)


def asked(name: bytes) -> bytes:
    """A request of a node that calls itself so."""
    return bytes(8) + len(name).to_bytes(2, "big") + name


def apart(directory: Path) -> Clusters:
    """Three nodes of which only the proxies between them are there."""
    return Clusters(directory, NONE, NONE, ExitStack(), {number: [Proxy(0, 0)] for number in (1, 2, 3)})


def moving(clusters: Clusters = NONE) -> Moves:
    return Moves(plan=upgrading(), clusters=clusters, topics=["t"], ids=["id"], copies=["remote"], target=NONE)


def test_a_node_that_is_cut_off_is_counted_by_what_it_asks(tmp_path: Path) -> None:
    clusters = apart(tmp_path)
    with clusters.isolated(1) as refused:
        by = {number: proxies[0].on_request for number, proxies in clusters.between.items()}
        assert by[2](ANY, asked(b"broker-3-fetcher-0")) and by[3](ANY, asked(b"2")) and refused() == 0
        assert not by[2](ANY, asked(b"raft-client-1")) and not by[1](ANY, asked(b"3")) and refused() == 2
    assert clusters.between[2][0].on_request(ANY, asked(b"1"))


@pytest.mark.parametrize("asks", [True, False])
def test_a_node_is_alone_if_it_was_asked_something(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asks: bool) -> None:
    clusters = apart(tmp_path)
    monkeypatch.setattr(moves, "leader", lambda *_: 1)
    monkeypatch.setattr(time, "sleep", lambda _: asks and clusters.between[1][0].on_request(ANY, asked(b"2")))
    fault = Fault(0.0, "isolate_leader", seconds=1.0)
    if asks:
        assert "1 requests were cut off" in moving(clusters).befall(fault)
    else:
        with pytest.raises(Missed):
            moving(clusters).befall(fault)


@pytest.mark.parametrize("lets", [True, False])
def test_ids_are_taken_if_the_target_lets_somebody(monkeypatch: pytest.MonkeyPatch, lets: bool) -> None:
    monkeypatch.setattr(moves, "hijack", lambda *_: lets)
    if lets:
        assert moving().befall(Fault(0.0, "hijack")) == "initialised 1 times"
    else:
        with pytest.raises(Missed):
            moving().befall(Fault(0.0, "hijack"))


@pytest.mark.parametrize("forgets", [True, False])
def test_producers_are_forgotten_if_one_is_known_no_more(monkeypatch: pytest.MonkeyPatch, forgets: bool) -> None:
    def known() -> Iterator[set[int]]:
        yield from [{7}, {7, 8}, {8} if forgets else {7, 8}]
        while True:
            yield {8, 7}

    looks = known()
    monkeypatch.setattr(moves, "forgetting", lambda _: nullcontext())
    monkeypatch.setattr(moves, "known_producers", lambda *_: {KEY: next(looks)})
    monkeypatch.setattr(moves, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(moves, "FORGETS_SECONDS", 60.0 if forgets else 0.1)
    if forgets:  # for longer than the plan says, until it has happened
        assert moving().befall(Fault(0.0, "forget_producers")).startswith("1 of the flow's were forgotten")
    else:
        with pytest.raises(Missed):
            moving().befall(Fault(0.0, "forget_producers"))

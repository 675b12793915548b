"""The doorbell: it rings once for so many new records, and again only for as many more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.errors import AirmirrorError
from airmirror.on_airflow.triggers.growth import GrowthTrigger, WatchedSource, growth
from support.flows import a_flow


def test_it_rings_for_every_so_many_records() -> None:
    sizes: Iterator[int] = iter([100, 109, 110, 110, 119, 145, 20, 29, 30])

    async def rung() -> list[int]:
        found = []
        async for grown in growth(lambda: next(sizes), 10, every=0):
            found.append(grown)
            if len(found) == 3:
                break
        return found

    assert asyncio.run(rung()) == [10, 35, 10]


def test_airflow_can_keep_it() -> None:
    path, arguments = GrowthTrigger("a->b", 5).serialize()
    module, _, name = path.rpartition(".")
    assert (module, name) == (GrowthTrigger.__module__, GrowthTrigger.__name__)
    assert GrowthTrigger(**arguments).serialize() == (path, arguments)


def test_settings_are_read_anew_and_connections_kept_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Routes:
        def __init__(self, cluster: Any, client: str) -> None:
            made.append(self)
            self.password, self.is_open = cluster.properties["password"], True

        def refresh(self, topics: list[str]) -> None:
            if self.password == "taken away":
                raise AirmirrorError()

        def keys(self, topics: list[str]) -> list[Any]:
            return [(topic, number) for topic in topics for number in range(2)]

        def with_leader(self, partitions: list[Any], seconds: float) -> list[Any]:
            return partitions

        def close(self) -> None:
            self.is_open = False

    passwords: Iterator[str] = iter(["first", "second", "taken away", "given back"])

    def connected(configuration: Any, flow: Any) -> Any:
        return replace(flow, source=replace(flow.source, properties={"password": next(passwords)}))

    monkeypatch.setattr("airmirror.clusters.protocol.routes.Routes", Routes)
    monkeypatch.setattr(
        "airmirror.clusters.protocol.log.offsets_with_patience", lambda routes, found, when: dict.fromkeys(found, 5)
    )
    monkeypatch.setattr("airmirror.on_airflow.connections.with_connections", connected)
    monkeypatch.setattr("airmirror.topics.sync.look", lambda flow: SimpleNamespace(topics={"orders": "east.orders"}))
    configuration = SimpleNamespace(flow=lambda name: a_flow("east"))
    monkeypatch.setattr("airmirror.topics.sound.sound", lambda path: SimpleNamespace(configuration=configuration))
    source = WatchedSource("east->west")
    assert [source.size(), source.size()] == [10, 10] and [each.password for each in made] == ["first"]
    source._until = 0  # a minute later
    assert source.size() == 10 and [each.is_open for each in made] == [False, True]
    source._until = 0
    with pytest.raises(AirmirrorError):
        source.size()
    assert source.size() == 10 and made[-1].password == "given back"
    source.close()
    assert not any(each.is_open for each in made)

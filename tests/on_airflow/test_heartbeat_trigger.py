"""The trigger that emits heartbeats, run by itself: its rhythm, its arguments, and an event loop that is never blocked."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airmirror.on_airflow.triggers import heartbeats as heartbeat_trigger
from airmirror.on_airflow.triggers.heartbeats import HeartbeatTrigger, keep_emitting
from airmirror_local.brokers import Broker
from airmirror_local.ports import LOOPBACK
from support.heartbeats import east, heartbeats_deleted
from support.topics import Record, read_all

__all__ = ["east"]

SECRET = "planted-3f7a"


@pytest.fixture(autouse=True)
def none_left(east: Broker) -> Iterator[None]:
    with heartbeats_deleted(east):
        yield


def configure(directory: Path, monkeypatch: pytest.MonkeyPatch, bootstrap: str, more: str = "") -> None:
    path = directory / "mirror.properties"
    path.write_text(
        f"""
clusters = east, west
east.bootstrap.servers = {bootstrap}
west.bootstrap.servers = {bootstrap}
east->west.enabled = true
heartbeats.topic.replication.factor = 1
east.ssl.key.password = {SECRET}
{more}
"""
    )
    monkeypatch.setenv("AIRMIRROR_CONFIG", str(path))


def heartbeats(cluster: Broker) -> list[Record]:
    return read_all(cluster, "heartbeats")[0]


async def turns(emitting: asyncio.Task[Any]) -> int:
    """How often the event loop came to something else while the task ran: hundreds of times, unless it is blocked."""
    count = 0
    while not emitting.done():
        await asyncio.sleep(0.01)
        count += 1
    return count


def test_the_trigger_knows_the_flows_name_only() -> None:
    path, arguments = HeartbeatTrigger("west->east").serialize()
    assert arguments == {"flow": "west->east"}
    module, _, name = path.rpartition(".")
    assert getattr(heartbeat_trigger, name) is HeartbeatTrigger and module == heartbeat_trigger.__name__


def test_heartbeats_come_on_their_rhythm_from_two_at_once_too(
    east: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(tmp_path, monkeypatch, east.bootstrap)

    async def two() -> tuple[list[dict[str, Any]], int]:
        both = asyncio.create_task(asyncio.wait_for(_gather(), 60))
        others = await turns(both)
        return await both, others

    async def _gather() -> list[dict[str, Any]]:
        return await asyncio.gather(keep_emitting("west->east", 3.5), keep_emitting("west->east", 3.5))

    events, others = asyncio.run(two())
    times = [record.timestamp for record in heartbeats(east)]
    assert sum(event["taken"] for event in events) == len(times) and not any(event["failed"] for event in events)
    assert 2 <= len(times) <= 8  # 3 or 4 each, fewer on a slow machine: the first comes when its topic is there
    assert {record.key for record in heartbeats(east)} == {b"\x00\x04west\x00\x04east"}
    assert others > 50


def test_a_trigger_ends_with_the_hour(east: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(tmp_path, monkeypatch, east.bootstrap)
    monkeypatch.setattr(heartbeat_trigger, "HOUR", 2.0)

    async def events() -> list[Any]:
        return [event.payload async for event in HeartbeatTrigger("west->east").run()]

    (event,) = asyncio.run(asyncio.wait_for(events(), 60))
    assert event["taken"] == len(heartbeats(east)) and event["failed"] == 0


def test_a_broker_that_does_not_answer_blocks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("airmirror.offsets.heartbeats.TIMEOUT", 2.0)
    monkeypatch.setattr("airmirror.clusters.admin.client.TIMEOUT", 2.0)  # of the look before it is asked again
    monkeypatch.setattr(heartbeat_trigger, "AGAIN_SECONDS", 0.1)
    with socket.create_server((LOOPBACK, 0)) as silent:
        configure(tmp_path, monkeypatch, f"{LOOPBACK}:{silent.getsockname()[1]}")

        async def waiting() -> tuple[dict[str, Any], int]:
            emitting = asyncio.create_task(keep_emitting("west->east", 3.0))
            others = await turns(emitting)
            return await emitting, others

        event, others = asyncio.run(waiting())
    assert event["taken"] == 0 and "can't be reached" in event["reason"]
    assert others > 50
    assert SECRET not in json.dumps(event) and SECRET not in caplog.text


def test_a_final_error_ends_the_trigger_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(tmp_path, monkeypatch, "nowhere:1", more="emit.heartbeats.enabled = false")

    async def events() -> list[Any]:
        return [event.payload async for event in HeartbeatTrigger("west->east").run()]

    (event,) = asyncio.run(asyncio.wait_for(events(), 30))
    assert "west->east" in event["error"]


def test_a_trigger_that_is_cancelled_leaves_nothing_behind(
    east: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(tmp_path, monkeypatch, east.bootstrap)

    async def cancelled() -> int:
        emitting = asyncio.create_task(keep_emitting("west->east", 3600))
        while not await asyncio.to_thread(_any, east):
            await asyncio.sleep(0.05)
        emitting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await emitting
        return len(heartbeats(east))

    assert asyncio.run(asyncio.wait_for(cancelled(), 60)) >= 1


def _any(cluster: Broker) -> bool:
    from support.topics import admin

    return "heartbeats" in admin(cluster).list_topics(timeout=30).topics and bool(heartbeats(cluster))

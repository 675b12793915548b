"""``window.trigger.records``: tells Airflow when a flow's source has grown, inside the triggerer.

A doorbell only: it carries no offsets. The run that it starts goes on from the progress, as every run does.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airmirror.errors import AirmirrorError

EVERY_SECONDS = 2.0
AGAIN_SECONDS = 10.0  # while the source can't be reached
TOPICS_SECONDS = 60.0  # how long a new topic may go unseen

log = logging.getLogger(__name__)


class GrowthTrigger(BaseEventTrigger):
    """Fires whenever the flow's source topics have ``records`` more than when it fired last."""

    def __init__(self, flow: str, records: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flow, self.records = flow, records

    def serialize(self) -> tuple[str, dict[str, Any]]:
        path = "airmirror.on_airflow.growth_trigger.GrowthTrigger"
        return path, {"flow": self.flow, "records": self.records}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        async for grown in growth(await asyncio.to_thread(_source, self.flow), self.records):
            yield TriggerEvent({"records": grown})  # type: ignore[no-untyped-call]


async def growth(size: Callable[[], int], records: int, every: float = EVERY_SECONDS) -> AsyncIterator[int]:
    """How much ``size()`` has grown, each time that it is at least ``records``; it is asked in a thread."""
    before: int | None = None
    while True:
        try:
            now = await asyncio.to_thread(size)
        except AirmirrorError as error:
            log.warning("%s", error)
            await asyncio.sleep(AGAIN_SECONDS)
            continue
        if before is None or now < before:  # topics can be deleted, too
            before = now
        elif now - before >= records:
            grown, before = now - before, now
            yield grown
        await asyncio.sleep(every)


def _source(name: str) -> Callable[[], int]:
    """How many offsets the flow's source topics have in all, when it is called."""
    from airmirror.clusters.log import LATEST, offsets_with_patience
    from airmirror.clusters.routes import Routes
    from airmirror.on_airflow.connections import with_connections
    from airmirror.on_airflow.deployment import deployment
    from airmirror.topics.sound import sound
    from airmirror.topics.sync import look
    from airmirror.wire.requests import TopicPartition

    configuration = sound(deployment().config).configuration
    flow = with_connections(configuration, configuration.flow(name))
    topics: list[str] = []
    seen = float("-inf")

    def size() -> int:
        nonlocal topics, seen
        if time.monotonic() - seen > TOPICS_SECONDS:
            topics, seen = sorted(look(flow).topics), time.monotonic()
        with Routes(flow.source, f"airmirror|{flow.name}|growth") as source:
            source.refresh(topics)
            partitions = [
                TopicPartition(topic, number) for topic in topics for number in range(source.partitions(topic))
            ]
            return sum(offsets_with_patience(source, source.with_leader(partitions, 1.0), LATEST).values())

    return size

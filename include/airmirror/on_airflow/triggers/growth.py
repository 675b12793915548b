"""``window.trigger.records``: tells Airflow when a flow's source has grown, inside the triggerer.

A doorbell only: it carries no offsets. The run that it starts resumes from the progress, as every run does.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airmirror.errors import AirmirrorError

if TYPE_CHECKING:
    from airmirror.clusters.protocol.routes import Routes

EVERY_SECONDS = 2.0
AGAIN_SECONDS = 10.0  # while the source can't be reached
ANEW_SECONDS = 60.0  # how long a new topic, or other credentials, may go unseen

log = logging.getLogger(__name__)


class GrowthTrigger(BaseEventTrigger):
    """Fires whenever the flow's source topics have ``records`` more than when it fired last."""

    def __init__(self, flow: str, records: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flow, self.records = flow, records

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "airmirror.on_airflow.triggers.growth.GrowthTrigger", {"flow": self.flow, "records": self.records}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        source = WatchedSource(self.flow)
        try:
            async for grown in growth(source.size, self.records):
                yield TriggerEvent({"records": grown})  # type: ignore[no-untyped-call]
        finally:
            source.close()


async def growth(size: Callable[[], int], records: int, every: float = EVERY_SECONDS) -> AsyncIterator[int]:
    """Yield the growth of ``size()`` each time that it reaches ``records``; ``size`` is called in a thread."""
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


class WatchedSource:
    """A flow's source. Its settings and topics are read again each minute, its connections kept for so long."""

    def __init__(self, flow: str) -> None:
        self._flow = flow
        self._until = float("-inf")
        self._topics: list[str] = []
        self._routes: Routes | None = None

    def size(self) -> int:
        """Return the number of offsets of all its topics. Raises AirmirrorError; the next call begins again."""
        from airmirror.clusters.protocol.log import LATEST, offsets_with_patience

        try:
            routes = self._opened()
            routes.refresh(self._topics)
            partitions = routes.with_leader(routes.keys(self._topics), 1.0)
            return sum(offsets_with_patience(routes, partitions, LATEST).values())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._routes is not None:
            self._routes.close()
        self._routes = None

    def _opened(self) -> Routes:
        """Connections with what is configured now: credentials that were changed or taken away count within a minute."""
        if self._routes is not None and time.monotonic() < self._until:
            return self._routes
        from airmirror.clusters.protocol.routes import Routes
        from airmirror.on_airflow.connections import with_connections
        from airmirror.on_airflow.deployment import deployment
        from airmirror.topics.sound import sound
        from airmirror.topics.sync import look

        self.close()
        configuration = sound(deployment().config).configuration
        flow = with_connections(configuration, configuration.flow(self._flow))
        self._topics, self._until = sorted(look(flow).topics), time.monotonic() + ANEW_SECONDS
        self._routes = Routes(flow.source, f"airmirror|{flow.name}|growth")
        return self._routes

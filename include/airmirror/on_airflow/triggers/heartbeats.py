"""Emits a flow's heartbeats inside Airflow's triggerer, on their rhythm, until the next full hour. Loaded in tasks only.

Airflow keeps a trigger's arguments in its database, so they are the flow's name only; configuration and connections are
read again by each trigger. Whatever waits for a broker does it in a thread: the event loop belongs to all triggers. Two at
once (a triggerer that moves its triggers, two runs) write heartbeats more often, which harms nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airmirror.config import Flow
from airmirror.config.pairs import heartbeat_flow, interval_seconds
from airmirror.errors import AirmirrorError
from airmirror.offsets.heartbeats import Heartbeats
from airmirror.on_airflow.connections import with_connections
from airmirror.on_airflow.deployment import deployment
from airmirror.topics.sound import sound

HOUR = 3600.0
AGAIN_SECONDS = 10.0  # between attempts while the target can't be reached

log = logging.getLogger(__name__)


class HeartbeatTrigger(BaseTrigger):
    """Fires once, at the end: ``taken`` and ``failed`` count heartbeats, ``reason`` is the last failure's.

    With a final error it fires at once, with ``error``.
    """

    def __init__(self, flow: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flow = flow

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "airmirror.on_airflow.triggers.heartbeats.HeartbeatTrigger", {"flow": self.flow}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        try:
            event = await keep_emitting(self.flow, HOUR - time.time() % HOUR)
        except AirmirrorError as error:
            event = {"error": str(error)}
        yield TriggerEvent(event)  # type: ignore[no-untyped-call]


async def keep_emitting(name: str, seconds: float) -> dict[str, Any]:
    """Emit for this many seconds; return the outcome. Reports a transient error and tries again; raises a final one."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    flow = await asyncio.to_thread(_flow, name)
    interval = interval_seconds(flow) or 1
    heartbeats = None
    reason = ""
    while heartbeats is None:
        try:
            heartbeats = await asyncio.to_thread(Heartbeats, flow)
        except AirmirrorError as error:
            if not error.transient:
                raise
            reason = str(error)
            log.warning("%s", reason)
            if loop.time() + AGAIN_SECONDS >= until:
                return {"taken": 0, "failed": 0, "reason": reason}
            await asyncio.sleep(AGAIN_SECONDS)
    log.info("Heartbeats of %s every %d s into %s.", name, interval, heartbeats.topic)
    try:
        due = loop.time()
        while due < until:
            await asyncio.sleep(due - loop.time())
            await asyncio.to_thread(heartbeats.emit)
            late = max(0.0, loop.time() - due)  # beats that are missed are not made up for
            due += interval * (1 + late // interval)
        await asyncio.to_thread(heartbeats.flush, AGAIN_SECONDS)
    finally:
        await asyncio.to_thread(heartbeats.__exit__, None, None, None)
    return {"taken": heartbeats.taken, "failed": heartbeats.failed, "reason": heartbeats.reason}


def _flow(name: str) -> Flow:
    configuration = sound(deployment().config).configuration
    return with_connections(configuration, heartbeat_flow(configuration, name))

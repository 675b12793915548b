"""Waiting until a MirrorMaker 2 is really stopped: nobody of it is left on the target, and nothing there moves any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import AirmirrorError, command, listed
from airmirror.flows.prepare import Opened, plan_topics
from airmirror.partitions import TopicPartition
from airmirror.windows.mirrormaker import writers

SAMPLE_SECONDS = 1.0
STILL_SECONDS = 5.0  # more than a request of a producer that was killed may take to arrive

Ends = Mapping[TopicPartition, int]


@dataclass(eq=False)
class MirrorMakerRuns(AirmirrorError):
    """MirrorMaker 2 is not stopped; who of it is left, and where something still moves."""

    transient: ClassVar[bool] = True

    flow: str
    seconds: float
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        again = command("takeover", "run", "--yes", flow=self.flow)
        return (
            f"flow {self.flow!r}: MirrorMaker 2 is not stopped after {self.seconds:.0f} s, and nothing was taken over; stop it "
            f"(its process, or its connectors: PUT /connectors/<name>/stop), then {again}\n{listed(self.reasons)}"
        )


def await_stopped(
    opened: Opened, seconds: float, still: float = STILL_SECONDS, tell: Callable[[str], None] = lambda phase: None
) -> None:
    """Return when for ``still`` seconds nobody of it was seen and nothing has moved. Raises MirrorMakerRuns after ``seconds``."""
    flow, begun = opened.flow, time.monotonic()
    remote = set(plan_topics(opened).topics.values())
    with Routes(flow.target, f"airmirror|{flow.name}|takeover") as target:
        quiet_since, before = begun, _ends(target, remote)
        while True:
            time.sleep(SAMPLE_SECONDS)  # the sampling interval: nothing tells that a worker has gone
            now = _ends(target, remote)
            reasons = [*writers(target, flow), *_moving(target, before, now)]
            before = now
            if not reasons:
                if time.monotonic() - quiet_since >= still:
                    return
                tell("MirrorMaker 2 is seen no more; waiting whether all stays still")
                continue
            quiet_since = time.monotonic()
            if quiet_since - begun > seconds:
                raise MirrorMakerRuns(flow.name, seconds, tuple(reasons))
            tell(f"waiting: {reasons[0]}")


def _moving(target: Routes, before: Ends, now: Ends) -> Iterator[str]:
    """Yield what has moved between two samples, and where a transaction is open."""
    stable = offsets_with_patience(target, now, LATEST, read_committed=True)
    for key, end in now.items():
        if end != before.get(key, end):
            yield f"{key} grew from {before[key]} to {end}"
        elif stable[key] < end:
            yield f"{key} has an open transaction from offset {stable[key]} on, which ends when its time is over"


def _ends(target: Routes, topics: Collection[str]) -> Ends:
    there = set(topics) - target.refresh_existing(topics).keys()
    keys = [TopicPartition(topic, number) for topic in sorted(there) for number in range(target.partitions(topic))]
    return offsets_with_patience(target, keys, LATEST)

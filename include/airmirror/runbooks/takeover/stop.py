"""Waiting until a MirrorMaker 2 is really stopped: nobody of it is left on the target, and nothing there moves any more."""

from __future__ import annotations

from airmirror.clusters.protocol.routes import Routes
from airmirror.flows.prepare import Opened, plan_topics
from airmirror.runbooks.errors import RunbookError
from airmirror.runbooks.stillness import await_still
from airmirror.tell import Tell, silent
from airmirror.windows.mirrormaker import writers

STILL_SECONDS = 5.0  # more than a request of a producer that was killed may take to arrive


class MirrorMakerRuns(RunbookError, transient=True):
    """MirrorMaker 2 is not stopped; who of it is left, and where something still moves."""

    seconds: float
    says = (
        "MirrorMaker 2 is not stopped after {seconds:.0f} s, and nothing was taken over; stop it (its process, or its "
        "connectors: PUT /connectors/<name>/stop; of a process with other flows too: {flow}.enabled = false and "
        "{flow}.emit.heartbeats.enabled = false in its file), then {airmirror:takeover run --reason … --yes}"
    )


def await_stopped(opened: Opened, seconds: float, still: float = STILL_SECONDS, tell: Tell = silent) -> None:
    """Return when for ``still`` seconds nobody of it was seen and nothing has moved. Raises MirrorMakerRuns after ``seconds``."""
    flow = opened.flow
    remote = set(plan_topics(opened).topics.values())
    with Routes(flow.target, f"airmirror|{flow.name}|takeover") as target:
        left = await_still(
            target,
            remote,
            still=still,
            seconds=seconds,
            reasons=lambda moving: [*writers(target, flow), *moving.values()],
            tell=tell,
        )
    if left:
        raise MirrorMakerRuns(flow.name, tuple(left), seconds)

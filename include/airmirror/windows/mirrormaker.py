"""Who of a running MirrorMaker 2 can be seen on the target: the workers of its connectors, and its open transactions.

A dedicated one is the group ``<source>-mm2`` of Connect's workers; on a Connect cluster, or under Strimzi, the workers say
which connectors' tasks they run. One that was killed is seen until its session has timed out (ten seconds by default).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.workers import Worker, open_transactions, workers
from airmirror.config import Flow
from airmirror.errors import AirmirrorError, command, counted, listed
from airmirror.slot.errors import ForeignRecords
from airmirror.windows.errors import ProgressDiffers
from airmirror.wire.mirrormaker import SOURCE_CONNECTOR

log = logging.getLogger(__name__)

CHECKPOINT_CONNECTOR = "MirrorCheckpointConnector"


class MirrorMakerBeside(AirmirrorError):
    """A flow's first window, where a MirrorMaker 2 that writes to the same topics runs."""

    flow: str
    writers: tuple[str, ...]

    def __str__(self) -> str:
        take_over = command("takeover", "run", "--reason", "…", "--yes", flow=self.flow)
        return (
            f"flow {self.flow!r}: MirrorMaker 2 runs, and this first window would write to its topics too: nothing was written. "
            f"Take over from it: {take_over} waits until it is stopped\n{listed(self.writers)}"
        )


def refuse_beside(flow: Flow) -> None:
    """Raise MirrorMakerBeside where a MirrorMaker 2 of the flow can be seen on the target."""
    with Routes(flow.target, f"airmirror|{flow.name}|takeover") as target:
        found = _seen(target, flow)
    if found:
        raise MirrorMakerBeside(flow.name, tuple(found))


def dedicated_group(flow: Flow) -> str:
    """Return the group of a dedicated MirrorMaker 2's workers, on the target."""
    return f"{flow.source.alias}-mm2"


def writers(target: Routes, flow: Flow) -> list[str]:
    """Say of each worker that runs the flow's connectors, and of each transaction of theirs that is open, who it is.

    Raises GroupsNotRead, BrokerUnreachable.
    """
    found = [said for worker in workers(target) if (said := _of_worker(worker, flow))]
    on_connect = [rf".+-{re.escape(name)}-\d+" for name in _connectors(flow)]
    ids = re.compile("|".join([rf"{re.escape(dedicated_group(flow))}-.+-\d+", *on_connect]))
    return found + [f"the transaction of {name!r} is open" for name in open_transactions(target) if ids.fullmatch(name)]


def name_writers(target: Routes, flow: Flow, errors: Iterable[AirmirrorError | None]) -> None:
    """Tell errors of records that others have written who of MirrorMaker 2 is there, where it may be seen."""
    found = [error for error in errors if isinstance(error, ForeignRecords | ProgressDiffers)]
    if not found:
        return
    who = _seen(target, flow)
    for each in found if who is not None else ():
        each.writer = f"MirrorMaker 2 was started again: {who[0]}" if who else ""


def _seen(target: Routes, flow: Flow) -> list[str] | None:
    """Return who of MirrorMaker 2 is there; None: it is not known."""
    try:
        return writers(target, flow)
    except AirmirrorError as error:
        log.info("%s: whether MirrorMaker 2 runs is not known: %s", flow.name, error)
        return None


def _connectors(flow: Flow) -> list[str]:
    """The connectors of the flow on a Connect cluster; under Strimzi that of its checkpoints has a name like it."""
    if not flow.settings.takeover_offsets_topics:
        return []
    name = flow.settings.takeover_connector_name
    beside = name.removesuffix(SOURCE_CONNECTOR) + CHECKPOINT_CONNECTOR
    return [name, beside] if name.endswith(SOURCE_CONNECTOR) else [name]


def _of_worker(worker: Worker, flow: Flow) -> str:
    """Return what a worker has to do with the flow; empty: nothing."""
    if worker.group == dedicated_group(flow):
        return f"MirrorMaker 2 at {worker.host}, of group {worker.group!r}"
    names = _connectors(flow)
    if worker.tasks is None:
        unknown = f"the worker at {worker.where} of group {worker.group!r} does not say what it runs"
        return unknown if names else ""
    mine = {name: sorted(task for owner, task in worker.tasks if owner == name and task >= 0) for name in names}
    said = [f"{counted(len(tasks), 'task')} of connector {name!r}" for name, tasks in mine.items() if tasks]
    return f"the worker at {worker.where} of group {worker.group!r} runs {' and '.join(said)}" if said else ""

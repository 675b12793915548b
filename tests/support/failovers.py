"""Failovers of a test: a flow with groups, its source gone, another deployment of it, and what was replicated and was found after
it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from airmirror.flows.measure import measure_window
from airmirror.flows.post_window import CHECKPOINTS, do_task
from airmirror.flows.prepare import Opened
from airmirror.ledger import GroupOffset, Ledger
from airmirror.runbooks.failover.alone import Unproven
from airmirror.runbooks.failover.order import FailoverOrder
from airmirror.runbooks.failover.runbook import FAILOVER
from airmirror.runbooks.run import run
from airmirror_local.brokers import Broker
from airmirror_local.ports import LOOPBACK, free_port
from support.flows import Mirror, mirror
from support.following import numbered
from support.groups import a_group, commit
from support.topics import Record, produce

DISASTER = FailoverOrder(way="disaster", reason="east burns", by="ada")
PLANNED = FailoverOrder(way="planned", reason="moving day", by="ada", wait=0.0)


def fail_over(opened: Opened, order: FailoverOrder) -> tuple[list[Unproven], list[GroupOffset], float]:
    """All steps; what is not proven, what became of groups, and the seconds that it took."""
    ran = run(FAILOVER, opened, order)
    return ran.gave.get("judge", []), ran.gave["move_groups"], ran.seconds


def with_groups(flow: Mirror, *groups: str) -> Mirror:
    """The flow that moves these groups, and never waits for its source to be quiet."""
    settings = replace(
        flow.flow.settings,
        groups=groups,
        emit_checkpoints_interval_seconds=0,
        failover_quiet_ms=0,
    )
    return replace(flow, opened=replace(flow.opened, flow=replace(flow.flow, settings=settings)))


def with_a_group(east: Broker, west: Broker, directory: Path) -> tuple[Mirror, str]:
    """A flow of 30 verified records in partition 0, and its group: at 20 on the source, and at 4 on the target since."""
    group = a_group()
    flow = with_groups(mirror(east, west, directory), group)
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 20})
    windowed(flow)
    commit(west, group, {(flow.remote_topic, 0): 4})
    return flow, group


def without_source(opened: Opened) -> Opened:
    """The flow when nobody listens at the source's address any more."""
    source = replace(opened.flow.source, bootstrap_servers=(f"{LOOPBACK}:{free_port()}",))
    return replace(opened, flow=replace(opened.flow, source=source))


def elsewhere(opened: Opened, directory: Path) -> Opened:
    """The flow of another deployment, whose ledger has seen nothing."""
    return replace(opened, ledger=Ledger(f"sqlite:///{directory}/{uuid4().hex}.db").flow(opened.flow.name))


def windowed(flow: Mirror) -> None:
    """One window, measured, and the checkpoints of groups."""
    measure_window(flow.opened, flow.run(), lambda key: True)
    do_task(flow.opened, CHECKPOINTS, "checkpoints")


def at(records: Mapping[int, Iterable[Record]], partition: int, runs: Iterable[tuple[int, int]]) -> list[bytes | None]:
    """The values of the records of a partition whose offsets lie in ``runs``."""
    offsets = {offset for first, last in runs for offset in range(first, last + 1)}
    return [each.value for each in records[partition] if each.offset in offsets]

"""Migrations of a test: a flow with a move group, orders for its steps, and what a step has said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from airmirror.flows.prepare import Opened
from airmirror.runbooks.failback.pair import Pair
from airmirror.runbooks.migration.chosen import Move, chosen_move
from airmirror.runbooks.migration.order import MoveOrder, MoveStep
from airmirror.runbooks.migration.runbook import MIGRATION
from airmirror.runbooks.run import run
from airmirror.runbooks.runbook import Progress
from airmirror_local.brokers import Broker
from support.flows import Mirror, mirror
from support.following import numbered
from support.groups import a_group, commit
from support.topics import Cluster, create_topic, produce

ORDER = MoveOrder(move="shop", reason="moving day", by="ada", wait=0.0)
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


def moving(
    east: Cluster, west: Cluster, directory: Path, *, partitions: int = 1, groups: str | None = None, **settings: str
) -> tuple[Mirror, str]:
    """A flow of two topics, of which ``flow.topic`` is the move group ``shop``; the other topic, which stays.

    ``settings``: of the flow, ``_`` for ``.``; ``groups``: those of the move group, None: they are discovered.
    """
    stays, topic = (create_topic(east, f"{name}-{uuid4().hex[:8]}", partitions) for name in ("stays", "moves"))
    lines = {"topics": f"{stays}, {topic}", "move.shop.topics": topic, "move.quiet.ms": "0", "move.soak.ms": "0"}
    lines |= {} if groups is None else {"move.shop.groups": groups}
    lines |= {key.replace("_", "."): value for key, value in settings.items()}
    return mirror(east, west, directory, topic=topic, settings=lines), stays


def mirrored(east: Broker, west: Broker, directory: Path, *, at: int = 20) -> tuple[Mirror, str]:
    """A flow of ``moving`` whose 30 records are mirrored, and a group that stands there on the source."""
    (flow, _), group = moving(east, west, directory), a_group()
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): at})
    takes(flow.opened, "mirror")
    return flow, group


def takes(opened: Opened, *steps: MoveStep, order: MoveOrder = ORDER, reverse: Opened | None = None) -> list[str]:
    """Take these steps; what they said. ``reverse``: the reverse flow."""
    wanted = steps or (*MIGRATION.usual(opened.flow, replace(order, reverse=reverse is not None)), "finish")
    lines: list[str] = []
    for step in wanted:
        run(MIGRATION, Pair(opened, reverse), order, (step,), Progress(line=lines.append))
    return lines


def move_of(opened: Opened) -> Move:
    return chosen_move(opened, ORDER.move)

"""Rounds of a flow for some groups alone, because the clusters are shared by all tests."""

from __future__ import annotations

from dataclasses import replace

from airmirror.config import Flow
from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.ledger import GroupOffset
from airmirror.offsets.checkpoints import emit_checkpoints
from airmirror.offsets.groups import sync_group_offsets
from airmirror.wire.checkpoints import Checkpoint, decode_checkpoint
from support.flows import Mirror
from support.topics import read_all


def of_groups(flow: Flow, *groups: str) -> Flow:
    more = {"groups": ", ".join(groups), "checkpoints.topic.replication.factor": "1"}
    return replace(flow, settings={**flow.settings, **more})


def sync(opened: Opened, *groups: str) -> list[GroupOffset]:
    """Group offsets: what became of each of these groups' positions."""
    catch_up_ledger(opened)
    return sync_group_offsets(of_groups(opened.flow, *groups), opened.ledger)


def emit(flow: Mirror, group: str, window: str = "checkpoints") -> int:
    """How many checkpoints were written."""
    catch_up_ledger(flow.opened)
    return emit_checkpoints(of_groups(flow.flow, group), flow.opened.ledger, window=window)


def checkpoints_on(flow: Mirror) -> list[Checkpoint]:
    """All in the checkpoints topic, in order."""
    (records,) = read_all(flow.target, f"{flow.flow.source.alias}.checkpoints.internal").values()
    return [
        decode_checkpoint(record.key or b"", record.value or b"")
        for record in records
        if record.value and record.key != b"foreign"
    ]

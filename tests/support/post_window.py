"""Post-window tasks of a flow for some groups alone, because the clusters are shared by all tests."""

from __future__ import annotations

from dataclasses import replace

from airmirror.config import Flow, parse
from airmirror.flows.prepare import Opened, caught_up
from airmirror.ledger import GroupOffset
from airmirror.offsets.checkpoints import emit_checkpoints
from airmirror.offsets.groups import sync_group_offsets
from airmirror.wire.checkpoints import Checkpoint
from support.flows import Mirror
from support.topics import read_all


def of_groups(flow: Flow, *groups: str) -> Flow:
    return replace(flow, settings=replace(flow.settings, groups=groups, checkpoints_topic_replication_factor=1))


def sync(opened: Opened, *groups: str) -> list[GroupOffset]:
    """Group offsets: what became of each of these groups' positions."""
    opened = caught_up(opened)
    return sync_group_offsets(of_groups(opened.flow, *groups), opened.ledger)


def apply(opened: Opened, *groups: str) -> list[GroupOffset]:
    """The same by their names, as a person moves them (``groups apply``): also back, to where their topics came from."""
    opened = caught_up(opened)
    return sync_group_offsets(opened.flow, opened.ledger, groups)


def emit(flow: Mirror, group: str, window: str = "checkpoints") -> int:
    """How many checkpoints were written."""
    opened = caught_up(flow.opened)
    return emit_checkpoints(of_groups(opened.flow, group), opened.ledger, window=window)


def checkpoints_on(flow: Mirror) -> list[Checkpoint]:
    """All in the checkpoints topic, in order."""
    (records,) = read_all(flow.target, f"{flow.flow.source.alias}.checkpoints.internal").values()
    return [
        Checkpoint.decode(record.key or b"", record.value or b"")
        for record in records
        if record.value and record.key != b"foreign"
    ]


def reverse_of(flow: Mirror, location: str = "source") -> Opened:
    """The flow from the target back to the source, in the same ledger; it replicates none of these topics."""
    alias = flow.flow.source.alias
    lines = {
        "clusters": f"{alias}, west",
        f"{alias}.bootstrap.servers": flow.source.bootstrap,  # type: ignore[union-attr]
        "west.bootstrap.servers": flow.target.bootstrap,  # type: ignore[union-attr]
        f"west->{alias}.enabled": "true",
        f"west->{alias}.topics": "nothing",
        "checkpoints.topic.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "offset-syncs.topic.location": location,
    }
    configuration = parse("\n".join(f"{key} = {value}" for key, value in lines.items()), "test")
    back = configuration.flow(f"west->{alias}")
    return Opened(configuration, back, flow.opened.ledger.other(back.name))

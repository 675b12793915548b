"""MirrorMaker 2's checkpoints: positions of groups on both clusters, for its tools and clients to read.

Never past the verified offset (invariant F). Written, as MirrorMaker 2 does (MirrorCheckpointTask.java), where there is
none yet, where the group moved back on the source, or forward on the target.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace

from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.ledger import FlowLedger
from airmirror.offsets.lags import note_group_lags
from airmirror.offsets.positions import GroupPosition, group_positions, known_resets, resets
from airmirror.offsets.translation import Translated
from airmirror.offsets.writing import Destination, load_written, write, write_anew
from airmirror.partitions import TopicPartition
from airmirror.tell import Tell, silent
from airmirror.topics.names import policy_of
from airmirror.windows.fence import HeldLease
from airmirror.windows.mirror import Mirror
from airmirror.wire.checkpoints import Checkpoint, without_nul

log = logging.getLogger(__name__)


def checkpoints_of(rows: Iterable[GroupPosition], last: Mapping[tuple[str, str, int], Checkpoint]) -> list[Checkpoint]:
    """Those of the translated positions that are to be written after the ``last`` of each key."""
    found = []
    for row in rows:
        if isinstance(row.found, Translated):
            new = Checkpoint(
                group=row.group,
                topic=row.remote_topic,
                partition=row.partition,
                upstream=row.found.position,
                downstream=row.found.translation,
                metadata=without_nul(row.committed.metadata),
            )
            old = last.get(new.key)
            if old is None or new.upstream < old.upstream or new.downstream > old.downstream:
                found.append(new)
    return found


def emit_checkpoints(
    flow: Flow, ledger: FlowLedger, *, window: str, tell: Tell = silent, under: HeldLease | None = None
) -> int:
    """Write the checkpoints of groups that have moved, in one transaction; how many. The ledger must have caught up.

    Under a lease of the name ``window``, or ``under`` one that is held already. Raises FlowBusy, SlotFenced,
    RecordsNotWritten, GroupsNotRead, TopicCreationRefused, TopicNotDescribed, or a cluster's error.
    """
    if not flow.settings.emit_checkpoints_enabled:
        return 0
    topic = policy_of(flow).checkpoints_topic(flow.source.alias)
    into = Destination(flow, flow.target, topic, "checkpoints")
    with nullcontext(under.mirror) if under else Mirror.open(flow, ledger, "checkpoints") as mirror:
        into.ensure(mirror.target, flow.settings.checkpoints_topic_replication_factor)
        decided = known_resets(mirror)
        rows = group_positions(mirror)

        def records() -> list[Checkpoint]:
            nonlocal decided, rows
            before, decided = decided, resets(mirror)
            if decided != before:  # since the positions were translated
                rows = group_positions(mirror)
            load_written(mirror.target, topic, ledger, "checkpoints")
            return checkpoints_of(rows, ledger.checkpoints())

        written = write_anew(into, ledger, records, window=window, tell=tell, under=under)
    try:
        note_group_lags(flow.source.alias, ledger, rows)
    except AirmirrorError as error:  # what is shown only must not keep checkpoints back
        log.warning("Flow %s: the lags of groups could not be noted: %s", flow.name, error)
    return written


def rewind_checkpoints(
    flow: Flow,
    ledger: FlowLedger,
    starts: Mapping[TopicPartition, tuple[int, int]],
    held: Callable[[], None],
    tell: Tell,
) -> int:
    """After a reset: say where groups resume in remote partitions that no longer reach to their checkpoints; how many.

    ``starts``: by remote partition the source offset to resume at, and the target offset where it will be. MirrorMaker 2's
    rule would leave such a checkpoint where it is, past records that are still to come. Under the flow's lease (``held``).
    Raises RecordsNotWritten, or a cluster's error.
    """
    if not flow.settings.emit_checkpoints_enabled:
        return 0
    topic = policy_of(flow).checkpoints_topic(flow.source.alias)
    with Routes(flow.target, f"airmirror|{flow.name}|checkpoints") as target:
        if target.refresh_existing([topic]):
            return 0

        def records() -> list[Checkpoint]:
            load_written(target, topic, ledger, "checkpoints")
            found = []
            for last in ledger.checkpoints().values():
                start, end = starts.get(TopicPartition(last.topic, last.partition), (0, last.downstream))
                if last.downstream > end:
                    found.append(replace(last, upstream=min(last.upstream, start), downstream=end))
            return found

        into = Destination(flow, flow.target, topic, "checkpoints")
        return write(into, records, held=held, tell=tell) if records() else 0

"""The return to MirrorMaker 2: it continues at the record after the last one that was copied and verified here.

A dedicated MirrorMaker 2 finds its progress in ``mm2-offsets.<source>.internal``, where every window commits it (invariant A).
A connector on a Connect cluster, or under Strimzi, has it in its workers' topic under its own name: it is written there while
the connector is stopped, or given to Connect's REST API, whose body this makes (KIP-875: PATCH /connectors/<name>/offsets).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airmirror.clusters.admin.appender import Appender
from airmirror.errors import command, counted
from airmirror.flows.freezing import StillReturning, check_open, taken
from airmirror.flows.post_window import POST_WINDOW_TASKS, PostWindowTask, do_tasks
from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.naming import progress_topic
from airmirror.partitions import PartitionFacts, grouped
from airmirror.runbooks.errors import RunbookError
from airmirror.runbooks.runbook import SILENT, Progress
from airmirror.runbooks.takeover.order import HandbackOrder
from airmirror.runbooks.written import written_since
from airmirror.topics.names import select
from airmirror.windows.connect_offsets import OffsetsTopicMissing
from airmirror.windows.fence import fence_around, leased, new_window
from airmirror.windows.mirror import Journal
from airmirror.wire.mirrormaker import source_offset_record


@dataclass(frozen=True)
class CopiedPosition(PartitionFacts):
    """A partition of the source, and the last offset that was copied and verified."""

    offset: int


class HandbackRefused(RunbookError):
    """Partitions in which something is held, or was copied and is not verified: MirrorMaker 2 must not continue after that."""

    def what(self) -> str:
        return (
            f"it can't be handed back: not verified up to the last record in {counted(len(self.reasons), 'partition')}; "
            f"{command('verify', flow=self.flow)} judges what is not, {command('hold', 'list', flow=self.flow)} shows holds"
        )


class CopiedSince(RunbookError):
    """Remote topics that MirrorMaker 2, or another writer, has written to since the last window: handed back, it would begin
    before them, and copy them twice."""

    says = (
        "it was not handed back: its remote topics hold records that no window has copied; "
        "{airmirror:takeover run --reason … --yes} takes over what MirrorMaker 2 has copied, once it is stopped"
    )


def positions(opened: Opened) -> list[CopiedPosition]:
    """The progress of every partition of the flow of which anything was copied, in order. Raises HandbackRefused, FlowFrozen,
    StillReturning where MirrorMaker 2 would copy what returns to where it came from, or a cluster's error."""
    catch_up_ledger(opened)
    state, ledger = opened.ledger.state(), opened.ledger
    owners = ledger.owners()
    if returning := tuple(sorted(owners.returning().values())):
        raise StillReturning(opened.flow.name, returning, returning if all(map(owners.is_apart, returning)) else ())
    check_open(opened)
    reasons = {hold.key: f"held: {hold.reason}" for hold in ledger.holds().values()}
    for record in ledger.unverified():
        reasons.setdefault(record.key, f"offsets {record.source_start} to {record.source_end - 1} are not verified")
    if reasons:
        told = tuple(f"{key}: {reason}" for key, reason in sorted(reasons.items()))
        raise HandbackRefused(opened.flow.name, told)
    names = select(opened.flow, {topic for topic, _ in state.known})
    known = (key for key in state.known if key[0] in names and state.positions[key] > 0)
    return [CopiedPosition(*key, state.positions[key] - 1) for key in known]


def next_positions(opened: Opened) -> list[CopiedPosition]:
    """The same, where MirrorMaker 2 has copied nothing since. Raises CopiedSince too."""
    found = positions(opened)
    with Journal.open(opened.flow, opened.ledger, "handback") as journal:
        check_copied(journal)
    return found


def rest_body(opened: Opened, found: Sequence[CopiedPosition]) -> dict[str, object]:
    """The body of a request that alters the offsets of the stopped connector."""
    cluster = opened.flow.source.alias
    return {
        "offsets": [
            {
                "partition": {"cluster": cluster, "topic": each.topic, "partition": each.partition},
                "offset": {"offset": each.offset},
            }
            for each in found
        ]
    }


def nothing_to_write(opened: Opened, order: HandbackOrder) -> str:
    """Return that a dedicated MirrorMaker 2 needs nothing, in words; "": a topic of Connect's workers is named."""
    topic = progress_topic(opened.flow.source.alias)
    on_connect = "for one on Connect name the topic of its workers (--topic)"
    return "" if order.into else f"a dedicated MirrorMaker 2 finds its progress in {topic}; {on_connect}"


def write_offsets(
    opened: Opened, order: HandbackOrder, progress: Progress = SILENT
) -> tuple[list[CopiedPosition], list[PostWindowTask]]:
    """Write the progress of a stopped connector into its workers' topic, and do the tasks that are due; what was done.

    A lease is held meanwhile, so that no window moves on. Raises HandbackRefused, CopiedSince, StillReturning, FlowFrozen,
    OffsetsTopicMissing, FlowBusy, FenceStuck, or a cluster's error.
    """
    flow, topic, window = opened.flow, order.into, new_window("handback")
    with Journal.open(flow, opened.ledger, "handback") as journal:
        if not topic or journal.target.refresh_existing([topic]):
            raise OffsetsTopicMissing(flow.name, flow.target.alias, topic)
        with leased(journal, window, slots=1) as granted:
            fence_around(granted, 1)  # a slot of a window that sleeps would commit after MirrorMaker 2 was told
            found, partitions = positions(opened), journal.target.partitions(topic)
            check_copied(journal)
            name, cluster = order.name_of(flow), flow.source.alias
            by_partition = grouped(
                source_offset_record(cluster, *each.key, each.offset, partitions=partitions, connector=name)
                for each in found
            )
            granted.check()
            for number, records in by_partition.items():
                with Appender(flow.target, topic, number) as appender:
                    appender.append(records)
    return found, do_tasks(opened, POST_WINDOW_TASKS, window, progress.phase)


def check_copied(journal: Journal) -> None:
    """Raise CopiedSince where others have written since the flow's last window. What is frozen by its name is written by
    applications, and what is excluded since is not handed back."""
    last = journal.index.last_mappings().values()
    ours = taken(journal.flow, journal.index.owners(), {each.topic for each in last})
    if others := written_since(journal, {each.remote_topic for each in last if each.topic in ours}):
        raise CopiedSince(journal.flow.name, tuple(others))

"""Consumer groups of two compared clusters: what a group that moves now would skip and read again.

Its position on the target is the one that some tool has committed there, or MirrorMaker 2's checkpoint of it. The truth is
the alignment of both logs, not what the tool says of itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airmirror.client import translate_offsets
from airmirror.clusters.admin.librdkafka import librdkafka_config
from airmirror.clusters.protocol.groups import committed_offsets, list_groups
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Cluster
from airmirror.evidence.found import Findings, Kind
from airmirror.evidence.parts import CLIENT
from airmirror.evidence.rows import ComparedLogs
from airmirror.naming.patterns import TopicFilter
from airmirror.partitions import GroupPartition, TopicPartition
from airmirror.rows import row_of

PLACED = (Kind.REORDERED, Kind.ALTERED)  # of these a group reads the record of one side for that of the other


@dataclass(frozen=True)
class ComparedPosition(GroupPartition):
    """A group on one partition: the next offsets to read on both sides (target -1: unknown), and what moving would do.

    ``skipped``: records that it would never read; ``again``: that it would read a second time (-1: there are too many
    differences to tell, or the topic was compared by key). ``by`` says who set the target's position.
    """

    source_position: int
    target_position: int
    by: str
    skipped: int = 0
    again: int = 0

    def as_dict(self) -> dict[str, Any]:
        row = row_of(self, "group topic partition source_position target_position position_by=by skipped again")
        return {name: None if value == -1 else value for name, value in row.items()}


def moves(
    source: Cluster, target: Cluster, rows: Sequence[ComparedLogs], groups: Sequence[str], source_alias: str = ""
) -> list[ComparedPosition]:
    """Return the moves of the groups that match, on every compared partition that they have a position on.

    ``source_alias``: the source's name in MirrorMaker 2's configuration; empty: checkpoints are not read. Raises
    GroupsNotRead, InvalidPattern, NoCheckpoints, or a cluster's error.
    """
    chosen = TopicFilter(tuple(groups), ())
    compared = {TopicPartition(row.topic, row.partition): row for row in rows if row.findings}
    with Routes(source, CLIENT) as here, Routes(target, CLIENT) as there:
        here.refresh([])
        there.refresh([])
        names = sorted(name for name in list_groups(here) if chosen.matches(name))
        ours, theirs = committed_offsets(here, names), committed_offsets(there, names)
    found = []
    for name in names:
        noted = checkpoints(target, source_alias, name)
        for key, committed in sorted(ours.get(name, {}).items()):
            if TopicPartition(key.topic, -1) in compared:
                found.append(ComparedPosition(name, *key, committed.offset, -1, "compared by key", -1, -1))
            row = compared.get(key)
            if row is None or row.findings is None:
                continue
            remote = TopicPartition(row.remote_topic, key.partition)
            own = theirs.get(name, {}).get(remote)
            position = own.offset if own else noted.get(remote, -1)
            by = "committed" if own else ("checkpoint" if position >= 0 else "none")
            skipped, again = _outcome(row.findings, committed.offset, position) if position >= 0 else (0, 0)
            found.append(ComparedPosition(name, *key, committed.offset, position, by, skipped, again))
    return found


def checkpoints(target: Cluster, source_alias: str, group: str) -> Mapping[TopicPartition, int]:
    """Return the positions of a group by MirrorMaker 2's checkpoints. Raises NoCheckpoints, or a cluster's error."""
    translated = translate_offsets(librdkafka_config(target, "consumer"), source_alias, group) if source_alias else ()
    return {TopicPartition(each.topic, each.partition): each.offset for each in translated}


def _outcome(found: Findings, source: int, target: int) -> tuple[int, int]:
    """Records skipped and read again by a group that goes from one position to the other; -1 where not all is named."""
    if found.ranges.is_cut or not found.are_all_named:
        return -1, -1
    skipped = again = 0
    placed = [each for each in found.differences if each.kind in PLACED and each.target_partition < 0]
    runs = [(each.source_first, each.target_first, each.count) for each in found.ranges]
    for here, there, count in (*runs, *((each.source_offset, each.target_offset, each.count) for each in placed)):
        read, passed = source - here, target - there  # records of the run before each position
        skipped += max(0, min(count, passed) - max(0, read))
        again += max(0, min(count, read) - max(0, passed))
    for each in found.differences:
        has_expired = each.kind is Kind.EXPIRED
        if each.kind is Kind.MISSING or (has_expired and each.target_offset < 0):
            skipped += max(0, each.source_offset + each.count - max(source, each.source_offset))
        if each.kind is Kind.TWICE or (has_expired and each.source_offset < 0):
            again += max(0, each.target_offset + each.count - max(target, each.target_offset))
    return skipped, again

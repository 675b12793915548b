"""What MirrorMaker 2's offset syncs tell of the records it has copied: where it skipped some, or copied some twice.

Each sync is one record's offsets on both clusters, and one is written wherever the two lose step. Between two syncs both logs
have the same number of records, unless something was skipped (the source was cut, created again, or had deleted what was not
copied yet) or copied twice (it was killed). Control records and compaction make them lose step too: so records are counted,
where the logs still have them. And a sync whose record is not the same on both sides tells that the source's log is another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience
from airmirror.errors import counted
from airmirror.offsets.syncs import place_of_syncs, read_syncs
from airmirror.offsets.translation import Sync
from airmirror.partitions import TopicPartition
from airmirror.windows.mirror import Mirror
from airmirror.windows.takeover import BothLogs, LogRange, Record

MOST_COUNTED = 50  # pairs of syncs out of step, of one partition: the newest
MOST_LOOKED_AT = 20  # syncs whose records are compared, of one partition
MOST_OFFSETS = 1_000_000  # between two syncs that are counted


@dataclass(frozen=True)
class Incident:
    """Something that MirrorMaker 2 did without telling: ``what``, between source offsets ``first`` and ``last``.

    ``is_loss``: records of the source may not be on the target.
    """

    first: int
    last: int
    what: str
    is_loss: bool


def syncs_of(mirror: Mirror, keys: Iterable[TopicPartition]) -> dict[TopicPartition, list[Sync]]:
    """MirrorMaker 2's offset syncs of these partitions, in the order in which they were written."""
    wanted, found = set(keys), defaultdict[TopicPartition, list[Sync]](list)
    for sync in read_syncs(*place_of_syncs(mirror.flow)):
        if sync.key in wanted:
            found[sync.key].append(Sync(sync.upstream, sync.downstream))
    return dict(found)


def incidents(
    mirror: Mirror, key: TopicPartition, remote: TopicPartition, syncs: Sequence[Sync], *, compacted: bool
) -> list[Incident]:
    """Return what the syncs of one partition tell, by source offset. Raises a cluster's error."""
    if not syncs:
        return []
    logs = _Logs.of(mirror, key, remote)
    other = list(_of_another_log(logs, syncs, compacted=compacted))
    if compacted:  # then numbers of records tell nothing
        return other
    steps = [pair for pair in pairwise(syncs) if pair[1].source - pair[0].source != pair[1].target - pair[0].target]
    parted = {incident.last for incident in other}
    told = (_between(logs, one, two) for one, two in steps[-MOST_COUNTED:] if one.source not in parted)
    return sorted([*other, *(each for each in told if each is not None)], key=lambda each: (each.first, each.last))


@dataclass(frozen=True)
class _Logs(BothLogs):
    """A partition's logs: where they begin and end."""

    here: tuple[int, int]
    there: tuple[int, int]

    @classmethod
    def of(cls, mirror: Mirror, key: TopicPartition, remote: TopicPartition) -> _Logs:
        ends = []
        for routes, partition in ((mirror.source, key), (mirror.target, remote)):
            extent = [offsets_with_patience(routes, [partition], at)[partition] for at in (EARLIEST, LATEST)]
            ends.append((extent[0], extent[1]))
        return cls(mirror, key, remote, *ends)

    def source(self, start: int, end: int) -> LogRange:
        return self.ours(start, min(end, self.end()))

    def target(self, start: int, end: int) -> list[Record]:
        stable = offsets_with_patience(self.mirror.target, [self.remote], LATEST, read_committed=True)[self.remote]
        return self.theirs(start, min(end, stable))


def _of_another_log(logs: _Logs, syncs: Sequence[Sync], *, compacted: bool) -> Iterator[Incident]:
    """Yield one incident for the syncs, if any, at which the source has another record, or none, and no cleaner took it."""
    seen = [sync for sync in syncs if sync.source >= logs.here[0] and logs.there[0] <= sync.target < logs.there[1]]
    step = max(1, len(seen) // MOST_LOOKED_AT)
    looked_at = [*seen[::step], *seen[-1:]]
    strange = [sync for sync in looked_at if not _is_same(logs, sync, compacted=compacted)]
    if strange:
        last = max(strange, key=lambda sync: sync.target)
        first = min(sync.source for sync in strange)
        most = max(sync.source for sync in strange)
        what = (
            f"the source's log is not the one that was copied up to target offset {last.target}: at source offset {last.source} "
            "it holds another record, or none; it was cut, or the topic was created again, and MirrorMaker 2 resumed"
        )
        yield Incident(first, most, what, is_loss=True)


def _is_same(logs: _Logs, sync: Sync, *, compacted: bool) -> bool:
    if sync.source >= logs.here[1]:
        return False
    ours = [each.digest for each in logs.source(sync.source, sync.source + 1).records if each.offset == sync.source]
    theirs = [each.digest for each in logs.target(sync.target, sync.target + 1) if each.offset == sync.target]
    return not theirs or (compacted and not ours) or ours == theirs  # an aborted copy is none


def _between(logs: _Logs, one: Sync, two: Sync) -> Incident | None:
    """Return what lies between two syncs that are out of step; None: nothing is wrong."""
    begin, end = sorted((one.source, two.source))
    if max(end - begin, two.target - one.target) > MOST_OFFSETS or two.target <= one.target:
        return None
    if begin < logs.here[0]:
        if (gone := end - begin - (two.target - one.target)) <= 0 or two.source < one.source:
            return None
        what = (
            f"{counted(gone, 'offset')} between source offsets {begin} and {end - 1} are not on the target, and the source has "
            "deleted them: control records, or records that MirrorMaker 2 never copied"
        )
        return Incident(begin, end - 1, what, is_loss=True)
    copied = len(logs.target(one.target, two.target)) if one.target >= logs.there[0] else two.target - one.target
    log = logs.source(begin, end)
    if two.source <= one.source:
        return _twice(two.source, max(begin, end - 1), copied + len(log.records))
    if copied < len(log.committed):
        skipped = len(log.committed) - copied
        what = f"{counted(skipped, 'record')} between source offsets {begin} and {end - 1} were not copied"
        return Incident(begin, end - 1, what, is_loss=True)
    return _twice(end, end, copied - len(log.records)) if copied > len(log.records) else None


def _twice(first: int, last: int, records: int) -> Incident:
    what = f"about {counted(records, 'record')} were copied twice: it began again at or before source offset {first}"
    return Incident(first, last, what, is_loss=False)

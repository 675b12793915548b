"""The positions of a flow's consumer groups on the source, and their translations to the target.

A topic that the flow replicates is translated by the flow's own mappings. A remote topic that came from the target (the
return trip) is translated by the mappings of the flow that brought it, read backwards: they lie on this flow's source. So is
what lies before the flow's own account of a topic that returns.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from airmirror.clusters.protocol.groups import STREAMS, Committed, committed_offsets, list_groups, may_break
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.stable import all_groups, stable_offsets
from airmirror.config import Flow
from airmirror.ledger import FlowLedger
from airmirror.ledger.groups import unfit_name
from airmirror.naming import TopicFilter
from airmirror.offsets.replicated import Extent, Known, PositionLookup
from airmirror.offsets.translation import Reason, Translated, to_source, to_target
from airmirror.partitions import GroupPartition, OfCopy, TopicPartition, grouped
from airmirror.topics.names import select
from airmirror.windows.mirror import Journal, Mirror, catch_up_if_there, caught_up_reverse, reverse_ledger
from airmirror.wire.mappings import ResetRecord

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GroupPosition(GroupPartition, OfCopy):
    """One group's position of one partition of the flow's source, and what it is on the target, or why that is not known.

    ``remote_topic`` is the target's name of the topic, empty where the flow does not replicate it; ``source`` and
    ``target`` are the partition's logs there, as far as they could be had. ``kind``: of the group, empty: not known.
    ``back``: its topic came from the target, and is translated to the original one.
    """

    committed: Committed
    remote_topic: str
    found: Translated | Reason
    source: Extent | None = None
    target: Extent | None = None
    lag_records: int = 0
    newest_ms: int = -1
    kind: str = ""
    back: bool = False


def group_positions(mirror: Mirror, only: Collection[str] = (), stable: Collection[str] = ()) -> list[GroupPosition]:
    """The positions of the groups that the flow moves (or of ``only``), by group, topic and partition.

    The ledger must have caught up. A group with a name that the ledger can't have is left out, with its reason in the log.
    ``stable``: topics in which no open transaction may hold a position, for whoever moves groups for good, and leaves none out.
    Raises GroupsNotRead, CoordinatorNotAvailable, OffsetsHeld, and what the clusters raise.
    """
    settings, source = mirror.flow.settings, mirror.source
    chosen = TopicFilter(settings.groups, settings.groups_exclude)
    listed = all_groups(source) if stable else list_groups(source)
    groups = [name for name in listed if (name in only if only else chosen.matches(name))]
    for name in groups:
        if reason := unfit_name(name):  # whoever may commit an offset names his group as he likes
            log.warning("Group %.100r is left out: %s.", name, reason)
    known = [name for name in groups if not unfit_name(name)]
    committed = stable_offsets(source, known, stable) if stable else committed_offsets(source, known)
    return [replace(row, kind=listed[row.group].kind) for row in positions_of(mirror, committed)]


def held_back(journal: Journal, rows: Sequence[GroupPosition]) -> list[GroupPosition]:
    """The rows as whoever moves groups must see them: a streams group that is not on the target is not made there by positions
    where that may break it. Raises GroupsNotRead, BrokerUnreachable.

    Where the source could not say what a group is, ``streams.applications`` does.
    """
    settings = journal.flow.settings
    if settings.streams_groups_ahead_allowed:
        return list(rows)
    early = would_break(journal.target, {row.group: row.kind for row in rows}, settings.streams_applications)
    return [replace(row, found=Reason.STREAMS_AHEAD) if row.group in early else row for row in rows]


def would_break(routes: Routes, kinds: Mapping[str, str], applications: Collection[str]) -> set[str]:
    """Return the streams groups that a cluster does not have, and may break on where positions make them.

    ``kinds``: of the groups, as another cluster has them; of one that is "" the ``applications`` tell. Every place that writes
    positions asks this of the cluster that it writes to. Raises GroupsNotRead, BrokerUnreachable.
    """
    streams = {each for each, kind in kinds.items() if kind == STREAMS or (not kind and each in applications)}
    if not streams or not may_break(routes):
        return set()
    there = list_groups(routes)
    return {
        each for each in streams if each not in there or there[each].kind not in (STREAMS, kinds[each] or "classic")
    }


def kinds_seen(journal: Journal) -> dict[str, str]:
    """Return the kinds of the source's groups as the ledger last saw them."""
    return {lag.group: lag.kind for lag in journal.index.group_lags() if lag.kind}


def positions_of(mirror: Mirror, committed: dict[str, dict[TopicPartition, Committed]]) -> list[GroupPosition]:
    """The same for offsets that are given, by group."""
    flow, source = mirror.flow, mirror.source
    wanted = {key.topic for offsets in committed.values() for key in offsets}
    existing = wanted - source.refresh_existing(wanted).keys()
    counts = {topic: source.partitions(topic) for topic in existing}
    remote = select(flow, existing)
    forward = PositionLookup(flow, mirror.index, source, mirror.target, remote, groups_on="source")
    returning = flow.returns.keys() & existing
    backward = _return_trip(mirror, existing - forward.remote_topics.keys() | returning)
    begins = _begins(mirror.index, returning)
    original = {remote: topic for topic, remote in backward.remote_topics.items()} if backward else {}
    rows: list[GroupPosition] = []
    there: list[tuple[str, TopicPartition, Committed]] = []
    back: list[tuple[str, TopicPartition, Committed]] = []
    for group, offsets in committed.items():
        for key, offset in offsets.items():
            known_topic = key.topic in forward.remote_topics or key.topic in original
            if known_topic and key.partition < counts[key.topic]:
                is_own = key.topic in forward.remote_topics and (
                    key.topic not in original or offset.offset >= begins.get(key, 0)
                )
                (there if is_own else back).append((group, key, offset))
            else:
                reason = Reason.NO_PARTITION if known_topic else Reason.NOT_REPLICATED
                rows.append(GroupPosition(group, *key, offset, "", reason))
    known = forward.known(grouped((key, offset.offset) for _, key, offset in there))
    rows += [_row(group, key, offset, forward, known[key]) for group, key, offset in there]
    if backward and back:
        rows += _rows_back(backward, original, back)
    return in_order(flow, rows)


def in_order(flow: Flow, rows: Sequence[GroupPosition]) -> list[GroupPosition]:
    """The rows by group, topic and partition. An aggregate moves only groups that it names: others write between our records, so
    that no position is past ours alone."""
    if flow.is_aggregate:
        named, apart = flow.settings.groups, (Reason.NOT_REPLICATED, Reason.NO_PARTITION)
        rows = [
            row if row.group in named or row.found in apart else replace(row, found=Reason.AGGREGATE) for row in rows
        ]
    return sorted(rows, key=lambda row: (row.group, row.topic, row.partition))


def positions_without_source(
    journal: Journal, committed: dict[str, dict[TopicPartition, Committed]]
) -> list[GroupPosition]:
    """The same while the flow's source can't be reached: by what lies on the target, and the ledger, which has caught up."""
    remote = select(journal.flow, {key.topic for offsets in committed.values() for key in offsets})
    lookup = PositionLookup(journal.flow, journal.index, None, journal.target, remote, groups_on="source")
    every = [(group, key, each) for group, offsets in committed.items() for key, each in offsets.items()]
    known = lookup.known(grouped((key, each.offset) for _, key, each in every if key.topic in remote))
    rows = [
        _row(group, key, each, lookup, known[key])
        if key in known
        else GroupPosition(group, *key, each, "", Reason.NOT_REPLICATED)
        for group, key, each in every
    ]
    return in_order(journal.flow, rows)


def positions_on_source(
    journal: Journal,
    committed: Mapping[str, Mapping[TopicPartition, Committed]],
    names: Mapping[str, str],
    source: Routes | None = None,
) -> list[GroupPosition]:
    """Offsets of groups on the flow's target, and what they are on its source: ``remote_topic`` is the source's topic here.

    ``names``: the source's topics with their remote topics; ``committed`` is in the latter. Without a ``source`` it is not asked.
    The ledger must have caught up.
    """
    lookup = PositionLookup(journal.flow, journal.index, source, journal.target, names, groups_on="target")
    back = [(group, key, each) for group, offsets in committed.items() for key, each in offsets.items()]
    return _rows_back(lookup, {remote: topic for topic, remote in names.items()}, back)


def known_resets(mirror: Mirror) -> list[ResetRecord]:
    """Return the resets of this flow and of the one back that the ledger knows: a reset moves positions."""
    return [*mirror.index.resets(), *reverse_ledger(mirror.flow, mirror.index).resets()]


def resets(mirror: Mirror) -> list[ResetRecord]:
    """Return those that were decided by now."""
    back = reverse_ledger(mirror.flow, mirror.index)
    catch_up_if_there(mirror.target, mirror.index, mirror.flow.source.alias)
    if back.identity() is not None:  # else no position has asked for it, and it may be large
        catch_up_if_there(mirror.source, back, mirror.flow.target.alias)
    return known_resets(mirror)


def _row(group: str, key: TopicPartition, offset: Committed, lookup: PositionLookup, known: Known) -> GroupPosition:
    forward = lookup.groups_on == "source"
    here, there = (known.source, known.target) if forward else (known.target, known.source)
    found: Translated | Reason
    if isinstance(known.replicated, Reason):
        found = known.replicated
    elif here is not None and offset.offset > here.end:
        found = Reason.BEYOND_END
    else:
        found = (to_target if forward else to_source)(known.replicated, offset.offset)
        if isinstance(found, Translated) and there is not None and found.translation > there.end:
            found = Reason.BEYOND_TARGET  # what was replicated is not there any more
    newest = known.newest
    name = lookup.remote_topics[key.topic] if forward else newest.topic if newest else ""
    lag = known.source.end - (newest.source_end if newest else 0) if known.source else 0
    return GroupPosition(
        group, *key, offset, name, found, here, there, max(0, lag), newest.max_timestamp if newest else -1
    )


def _rows_back(
    lookup: PositionLookup, original: Mapping[str, str], back: Sequence[tuple[str, TopicPartition, Committed]]
) -> list[GroupPosition]:
    """The rows of groups on the lookup's target; ``original``: the source's topics by their remote topics."""
    names = {key: TopicPartition(original[key.topic], key.partition) for _, key, _ in back}
    known = lookup.known(grouped((names[key], offset.offset) for _, key, offset in back))
    return [replace(_row(group, key, offset, lookup, known[names[key]]), back=True) for group, key, offset in back]


def _begins(ledger: FlowLedger, returning: Collection[str]) -> dict[TopicPartition, int]:
    """Return where the flow's own account of partitions of topics that return begins: what lies before it was brought there."""
    last = [record for (topic, _), record in ledger.last_mappings().items() if topic in returning]
    ids = [(record.topic, record.partition, record.source_topic_id) for record in last]
    return {each.key: each.source_start for each in ledger.first_mappings(ids)}


def _return_trip(mirror: Mirror, topics: set[str]) -> PositionLookup | None:
    """The reverse flow of remote topics on the source that came from the target; None where there are none.

    ``topics`` of the flow need not name them, for nothing is copied; ``topics.exclude`` counts.
    """
    flow, source, target = mirror.flow, mirror.source, mirror.target
    back = caught_up_reverse(source, flow, mirror.index) if topics else None
    if back is None:
        return None
    wanted = TopicFilter((".*",), flow.topics_exclude)
    brought = {
        record.topic: record.remote_topic
        for record in back.last_mappings().values()
        if record.remote_topic in topics
        and (
            record.remote_topic in flow.returns
            or (wanted.matches(record.remote_topic) and wanted.matches(record.topic))
        )
    }
    return PositionLookup(flow, back, target, source, brought, groups_on="target") if brought else None

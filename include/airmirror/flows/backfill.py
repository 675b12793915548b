"""The backfill: records before the first replicated offset, copied into topics of their own (``backfill.into.suffix``).

Appended to the remote topic they would be out of order (invariant C), so they go into ``<remote topic><suffix>``, from the
source's first offset on, by the same windows as ever. These are windows of a second flow, whose mapping topic and progress are
its own, so that the copy is exactly once, in order and verified, and can be resumed. While it copies it holds the leases of
both flows (invariant B): it and the schedule never write at the same time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import AirmirrorError, listed
from airmirror.flows.audit import Audit, Bucket, Range, had_records_before
from airmirror.flows.prepare import Opened, backfill_of, catch_up_ledger, plan_topics
from airmirror.tell import Tell
from airmirror.topics.internal import ensure_internal_topics
from airmirror.topics.sync import apply
from airmirror.windows.fence import leased
from airmirror.windows.mirror import Journal
from airmirror.windows.results import WindowResult
from airmirror.windows.window import Execute, WindowOrder, run_window


class BackfillFailed(AirmirrorError):
    """Partitions of which what lies before the first replicated offset could not be replicated into their own topic."""

    flow: str
    suffix: str
    errors: tuple[str, ...]
    final: bool = True

    @property
    def transient(self) -> bool:  # type: ignore[override]
        return not self.final

    def __str__(self) -> str:
        return (
            f"flow {self.flow!r}: {len(self.errors)} partitions could not be replicated into topics with the suffix "
            f"{self.suffix!r}:\n{listed(self.errors)}\nWith another backfill.into.suffix it starts over, in other topics"
        )


def before_the_first(opened: Opened, ranges: Iterable[Range]) -> list[Range]:
    """The parts of ``ranges`` that lie before the first replicated offset and that the source still has.

    None of a partition whose first mapping records are pruned: what was replicated of it is not known any more.
    """
    items = list(ranges)
    catch_up_ledger(opened)
    last = opened.ledger.last_mappings()
    known = [(*item.key, last[item.key].source_topic_id) for item in items if item.key in last]
    first = {record.key: record for record in opened.ledger.first_mappings(known)}
    name = f"airmirror|{opened.flow.name}|backfill"
    with Routes(opened.flow.source, name) as source, Routes(opened.flow.target, name) as target:
        source.refresh({item.topic for item in items})
        earliest = offsets_with_patience(source, [item.key for item in items if item.key in first], EARLIEST)
        parts = [
            replace(item, start=max(item.start, earliest[item.key]), end=min(item.end, first[item.key].source_start))
            for item in items
            if item.key in first
        ]
        return [part for part in parts if part.start < part.end and not had_records_before(target, first[part.key])]


def backfill(opened: Opened, ranges: Sequence[Range], execute: Execute, order: WindowOrder) -> WindowResult | None:
    """Replicate, in order from the source's first offset, up to the ends of ``ranges``, as ``before_the_first`` gives them.

    In one window, which may be cut. None: all of it was replicated before. Raises FlowBusy,
    BackfillFailed, or a cluster's error.
    """
    beside, flow = backfill_of(opened), opened.flow
    if beside is None or not ranges:
        return None
    catch_up_ledger(beside)
    positions = beside.ledger.state().positions
    if all(positions.get(item.key, 0) >= item.end for item in ranges):
        return None
    ensure_internal_topics(beside.flow)
    with Journal.open(flow, opened.ledger, "backfill") as journal, leased(journal, order.window, slots=0):
        remote = _create_topics(opened, beside, {item.topic for item in ranges}, order.tell)
        ends = {item.key: item.end for item in ranges}
        result = run_window(beside.flow, beside.ledger, remote, execute, replace(order, until=ends))
    errors = [row.error for row in result.rows if row.error is not None and row.key in ends]
    if errors:
        final = any(not error.transient for error in errors)
        raise BackfillFailed(flow.name, flow.settings.backfill_into_suffix or "", tuple(map(str, errors)), final)
    return result


def joined(one: Audit, other: Audit) -> Audit:
    """Two audits as one: their partitions, and the sums of their buckets."""
    buckets: dict[int, Bucket] = {}
    for begins, bucket in (*one.buckets.items(), *other.buckets.items()):
        into = buckets.setdefault(begins, Bucket())
        into.source += bucket.source
        into.target += bucket.target
        into.replicated += bucket.replicated
        into.latency_sum += bucket.latency_sum
        into.latency_max = max(into.latency_max, bucket.latency_max)
    return Audit((*one.partitions, *other.partitions), dict(sorted(buckets.items())))


def _create_topics(opened: Opened, beside: Opened, topics: Collection[str], tell: Tell) -> Mapping[str, str]:
    """The topics that are written, by source topic; created where they are missing. Raises BackfillFailed."""
    flow, suffix = opened.flow, opened.flow.settings.backfill_into_suffix or ""
    planned = plan_topics(opened)
    remote = {topic: planned.topics[topic] + suffix for topic in topics if topic in planned.topics}
    names = set(remote.values())
    moved = replace(flow, remote_topics={**flow.remote_topics, **remote})
    elsewhere = plan_topics(replace(opened, flow=moved), own=names)
    only = replace(
        elsewhere,
        create=tuple(new for new in elsewhere.create if new.name in names),
        grow=tuple(more for more in elsewhere.grow if more.name in names),
        differences={},
        acls=(),
    )
    refused = [str(each) for each in (*planned.refused, *elsewhere.refused) if each.topic in topics]
    refused += _not_ours(beside, remote)
    if refused:
        raise BackfillFailed(flow.name, suffix, tuple(refused))
    if errors := apply(flow, only, tell).errors:
        final = any(not error.transient for error in errors)
        raise BackfillFailed(flow.name, suffix, tuple(map(str, errors)), final)
    return remote


def _not_ours(beside: Opened, remote: Mapping[str, str]) -> list[str]:
    """Topics of these names that hold records of another writer."""
    flow, ours = beside.flow, {record.remote_topic for record in beside.ledger.last_mappings().values()}
    with Routes(flow.target, f"airmirror|{flow.name}|backfill") as target:
        strange = target.keys_now({name for name in remote.values() if name not in ours})
        ends = offsets_with_patience(target, strange, LATEST)
    taken = sorted({log.topic for log, end in ends.items() if end})
    return [f"cluster {flow.target.alias!r} has topic {name!r} with records of another writer" for name in taken]

"""``airmirror compare``: topics of two clusters, whoever copied them, record by record. Nothing is written.

It needs no configuration and no mapping: READ and DESCRIBE on the topics of both sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airmirror.clusters.admin.client import connect
from airmirror.clusters.looking import look_again
from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes, TopicNotFound
from airmirror.clusters.protocol.topic_configs import compacted_now
from airmirror.config import Cluster
from airmirror.config.values import names_topic
from airmirror.evidence.asking import BadRename, ComparisonRequest, EmptyTimeRange, NothingToCompare
from airmirror.evidence.borders import cut, sampled
from airmirror.evidence.found import Findings, Kind
from airmirror.evidence.joining import Work, compare_parts, together
from airmirror.evidence.open_records import LEAST_OPEN, MOST_OPEN
from airmirror.evidence.parts import CLIENT, Bounds, Execute, Part, in_this_process
from airmirror.evidence.rows import ComparedLogs, row_of
from airmirror.evidence.settling import find_moved, settled, told_apart
from airmirror.naming.internal import is_mapping_topic, is_progress_topic
from airmirror.naming.patterns import TopicFilter
from airmirror.partitions import TopicPartition
from airmirror.tell import Tell, silent
from airmirror.times import utc

PART_OFFSETS = 2_000_000  # of the source, where the parts of a partition are compared by tasks
MOST_PARTS = 200  # of a partition
OPEN_SECONDS = 5.0  # for transactions to end that were open when a topic's turn came


@dataclass(frozen=True)
class Comparing:
    """Both clusters, the question, and who compares the parts (``is_cut``: in tasks, so that partitions are cut)."""

    here: Routes
    there: Routes
    asked: ComparisonRequest
    execute: Execute
    is_cut: bool


def compare_clusters(
    source: Cluster,
    target: Cluster,
    asked: ComparisonRequest,
    tell: Tell = silent,
    execute: Execute | None = None,
) -> list[ComparedLogs]:
    """Compare every topic that is asked for.

    Raises NothingToCompare, BadRename, EmptyTimeRange, InvalidPattern, or a cluster's error.

    ``execute`` compares the parts of all topics at once; without it they are compared here, topic by topic.
    """
    if not names_topic(asked.rename):
        raise BadRename(asked.rename)
    if asked.first_ms is not None and asked.end_ms is not None and asked.first_ms >= asked.end_ms:
        raise EmptyTimeRange(utc(asked.first_ms), utc(asked.end_ms))
    topics = _topics(source, asked)
    rows: list[ComparedLogs] = []
    with Routes(source, CLIENT) as here, Routes(target, CLIENT) as there:
        here.refresh([])
        there.refresh([])
        comparing = Comparing(
            here, there, asked, execute=execute or in_this_process(here, there, asked.view), is_cut=execute is not None
        )
        for batch in [topics] if execute else [[topic] for topic in topics]:
            tell(batch[0] if len(batch) == 1 else f"{len(batch)} topics")
            rows += _compare_topics(comparing, batch)
    return rows


def _topics(source: Cluster, asked: ComparisonRequest) -> list[str]:
    chosen, within = TopicFilter(asked.topics, asked.exclude), TopicFilter(asked.within, ())
    names = [name for name in connect(source).topic_names() if within.matches(name) and chosen.matches(name)]
    topics = [
        name for name in names if not (name.startswith("__") or is_mapping_topic(name) or is_progress_topic(name))
    ]
    if not topics:
        raise NothingToCompare(source.alias, asked.topics)
    return topics


def _compare_topics(to: Comparing, topics: Sequence[str]) -> list[ComparedLogs]:
    planned: dict[str, list[Work] | TopicNotFound] = {}
    for topic in topics:
        try:
            planned[topic] = _planned(to, topic)
        except TopicNotFound as error:
            planned[topic] = error
    works = [work for found in planned.values() if isinstance(found, list) for work in found]
    compare_parts(works, to.execute, is_sample=to.asked.sample is not None)
    rows: list[ComparedLogs] = []
    for topic, of_topic in planned.items():
        if isinstance(of_topic, TopicNotFound):
            rows.append(ComparedLogs(topic, to.asked.remote(topic), -1, error=of_topic))
            continue
        found = [_together(to, work) for work in of_topic]
        find_moved(found)
        rows += [row_of(to.asked, work, _settled(work.whole, each)) for work, each in zip(of_topic, found, strict=True)]
    return rows


def _settled(whole: Part, found: Findings) -> Findings:
    """Settle what is open. What an open transaction keeps back on the source, the target may have."""
    is_withheld = any(each.withheld for each in whole.source)
    if not whole.is_by_key:
        return settled(found, whole.source[0].log_start, whole.target[0].log_start, is_withheld=is_withheld)
    if is_withheld:
        found.counts[Kind.WITHHELD] = found.counts.pop(Kind.EXTRA, 0)
    return found


def _planned(to: Comparing, topic: str) -> list[Work]:
    """The work on a topic's partitions, each in parts."""
    remote = to.asked.remote(topic)
    to.here.refresh([topic])
    to.there.refresh([remote])
    theirs = _bounds(to.there, remote, to.asked)  # first: what is copied meanwhile lags, and is not extra
    ours = _bounds(to.here, topic, to.asked)
    if len(ours) != len(theirs):
        whole = Part(ours, theirs)
        return [Work(topic, remote, -1, whole, [whole])]
    most = max(LEAST_OPEN, MOST_OPEN // max(len(ours), 1))
    wholes = [Part((one,), (other,), most_open=most) for one, other in zip(ours, theirs, strict=True)]
    return [Work(topic, remote, number, whole, _parts(to, whole)) for number, whole in enumerate(wholes)]


def _parts(to: Comparing, whole: Part) -> list[Part]:
    """The parts of a partition that are compared: a sample's, or all. (What compaction took is settled by the whole log.)"""
    source, target = whole.source[0].log(to.here, to.asked.view), whole.target[0].log(to.there, to.asked.view)
    if to.asked.sample is not None:
        chosen = to.asked.sample.chosen(source)
        return [whole.within(*places) for places in sampled(source, target, chosen)] or [whole]
    if not to.is_cut or source.is_compacted or target.is_compacted:
        return [whole]
    size = max(PART_OFFSETS, -(-(source.end - source.start) // MOST_PARTS))
    return [whole.within(*places) for places in cut(source, target, size)]


def _together(to: Comparing, work: Work) -> Findings:
    """The findings of a partition; open are only those records that may be in another one, or nowhere."""
    if len(work.parts) == 1 and work.parts[0].is_whole:
        return work.found[0]
    found = together(work)
    view = to.asked.view
    return told_apart(found, work.whole.source[0].log(to.here, view), work.whole.target[0].log(to.there, view))


def _bounds(routes: Routes, topic: str, asked: ComparisonRequest) -> tuple[Bounds, ...]:
    """The offsets of a topic's partitions, as far as they reach now, within the times that are asked for."""
    keys = routes.keys([topic])
    log_starts = offsets_with_patience(routes, keys, EARLIEST)
    wanted = offsets_with_patience(routes, keys, LATEST)
    ends = _stable(routes, wanted) if asked.is_committed else wanted
    starts = log_starts if asked.first_ms is None else offsets_with_patience(routes, keys, asked.first_ms)
    until = wanted if asked.end_ms is None else offsets_with_patience(routes, keys, asked.end_ms)
    is_compacted = topic in compacted_now(routes, [topic])

    def bounds(key: TopicPartition) -> Bounds:
        asked_end = until[key] if until[key] >= 0 else wanted[key]
        start = min(starts[key] if starts[key] >= 0 else ends[key], ends[key])
        end = max(start, min(asked_end, ends[key]))
        log_start, withheld = log_starts[key] if asked.first_ms is None else 0, max(0, asked_end - end)
        return Bounds(key, start, end, start, end, log_start, is_compacted, withheld)

    return tuple(map(bounds, keys))


def _stable(routes: Routes, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return the ends of what is committed, no further than what is ``wanted``: once all of it is, or after a while."""

    def before() -> dict[TopicPartition, int]:
        ends = offsets_with_patience(routes, wanted, LATEST, read_committed=True)
        return {key: end for key, end in ends.items() if end < wanted[key]}

    return {**wanted, **look_again(before, OPEN_SECONDS)}

"""``airmirror compare``: topics of two clusters, whoever copied them, record by record. Nothing is written.

It needs no configuration and no segment: READ and DESCRIBE on the topics of both sides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from airmirror.clusters.admin.client import connect
from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes, TopicNotFound
from airmirror.clusters.protocol.topic_configs import topic_configs
from airmirror.config import Cluster
from airmirror.errors import AirmirrorError
from airmirror.evidence.by_key import compare_by_key
from airmirror.evidence.comparing import compare_logs
from airmirror.evidence.found import Difference, Findings, Kind
from airmirror.evidence.history import REMEMBERED
from airmirror.evidence.logs import Log
from airmirror.naming.filters import TopicFilter
from airmirror.naming.internal import is_progress_topic, is_segment_topic
from airmirror.partitions import TopicPartition

CLIENT = "airmirror|compare"
PLACE = "{topic}"


@dataclass(eq=False)
class NothingToCompare(AirmirrorError):
    """No topic of the source matches."""

    cluster: str
    topics: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"cluster {self.cluster!r}: no topic matches {', '.join(self.topics)}; is the user allowed to describe it?"
        )


@dataclass(eq=False)
class BadRename(AirmirrorError):
    """A template for the target's topics without a place for the source's name."""

    template: str

    def __str__(self) -> str:
        return f"--rename {self.template!r} has no {PLACE}; write for example 'east.{PLACE}'"


@dataclass(frozen=True)
class Asked:
    """The parts to compare. ``first_ms`` and ``end_ms``: only records of these times (epoch, the end not included), or None.

    ``rename`` makes a target's topic of a source's; ``is_committed``: as consumers with read_committed see both logs.
    """

    topics: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    rename: str = PLACE
    first_ms: int | None = None
    end_ms: int | None = None
    times: bool = True
    is_committed: bool = True

    def remote(self, topic: str) -> str:
        return self.rename.replace(PLACE, topic)


@dataclass(frozen=True)
class ComparedLogs:
    """One partition, or a topic as a whole where partitions differ in number (``partition`` -1): counts and differences.

    ``notes`` say how sure that is; ``error`` why it could not be compared.
    """

    topic: str
    remote_topic: str
    partition: int
    counts: Mapping[Kind, int] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()
    keeps_offsets: bool = False
    notes: tuple[str, ...] = ()
    error: AirmirrorError | None = None
    findings: Findings | None = field(default=None, repr=False, compare=False)

    @property
    def is_equal(self) -> bool:
        return self.error is None and (self.findings is None or self.findings.is_equal)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: every run of differences by its offsets."""
        return {
            "topic": self.topic,
            "remote_topic": self.remote_topic,
            "partition": self.partition if self.partition >= 0 else None,
            "is_equal": self.is_equal,
            "records": {str(kind): self.counts.get(kind, 0) for kind in Kind},
            "keeps_offsets": self.keeps_offsets,
            "differences": [each.as_dict() for each in self.differences],
            "notes": list(self.notes),
            "error": str(self.error) if self.error else None,
        }


def compare_clusters(
    source: Cluster, target: Cluster, asked: Asked, tell: Callable[[str], None] = lambda what: None
) -> list[ComparedLogs]:
    """Compare every topic that is asked for. Raises NothingToCompare, BadRename, InvalidPattern, or a cluster's error."""
    if PLACE not in asked.rename:
        raise BadRename(asked.rename)
    topics = _topics(source, asked)
    rows: list[ComparedLogs] = []
    with _routes(source, target) as (here, there):
        for topic in topics:
            tell(topic)
            rows += _compare_topic(here, there, topic, asked)
    return rows


def _topics(source: Cluster, asked: Asked) -> list[str]:
    chosen = TopicFilter(asked.topics, asked.exclude)
    names = [name for name in connect(source).topic_names() if chosen.matches(name)]
    topics = [
        name for name in names if not (name.startswith("__") or is_segment_topic(name) or is_progress_topic(name))
    ]
    if not topics:
        raise NothingToCompare(source.alias, asked.topics)
    return topics


@contextmanager
def _routes(source: Cluster, target: Cluster) -> Iterator[tuple[Routes, Routes]]:
    with Routes(source, CLIENT) as here, Routes(target, CLIENT) as there:
        here.refresh([])
        there.refresh([])
        yield here, there


def _compare_topic(source: Routes, target: Routes, topic: str, asked: Asked) -> list[ComparedLogs]:
    remote = asked.remote(topic)
    try:
        source.refresh([topic])
        target.refresh([remote])
        ours = _logs(source, topic, asked)
        theirs = _logs(target, remote, asked)
        if len(ours) != len(theirs):
            return [_by_key(topic, remote, ours, theirs)]
        found = [compare_logs(one, other) for one, other in zip(ours, theirs, strict=True)]
    except TopicNotFound as error:
        return [ComparedLogs(topic, remote, -1, error=error)]
    _find_moved(found)
    return [
        _row(topic, remote, number, each, _notes(each, one, other))
        for number, (each, one, other) in enumerate(zip(found, ours, theirs, strict=True))
    ]


def _logs(routes: Routes, topic: str, asked: Asked) -> list[Log]:
    """The logs of a topic's partitions, as far as they reach now, within the times that are asked for."""
    keys = [TopicPartition(topic, number) for number in range(routes.partitions(topic))]
    log_starts = offsets_with_patience(routes, keys, EARLIEST)
    ends = offsets_with_patience(routes, keys, LATEST, read_committed=asked.is_committed)
    starts = log_starts if asked.first_ms is None else offsets_with_patience(routes, keys, asked.first_ms)
    until = ends if asked.end_ms is None else offsets_with_patience(routes, keys, asked.end_ms)
    configs = topic_configs(routes, [topic], ["cleanup.policy"])
    compacted = "compact" in configs.get(topic, {}).get("cleanup.policy", "")
    return [
        Log(
            routes,
            key,
            start=ends[key] if starts[key] < 0 else starts[key],
            end=ends[key] if until[key] < 0 else min(until[key], ends[key]),
            log_start=log_starts[key] if asked.first_ms is None else 0,
            is_committed=asked.is_committed,
            is_compacted=compacted,
            times=asked.times,
        )
        for key in keys
    ]


def _by_key(topic: str, remote: str, ours: Sequence[Log], theirs: Sequence[Log]) -> ComparedLogs:
    found = compare_by_key(ours, theirs)
    note = (
        f"{len(ours)} partitions on the source, {len(theirs)} on the target: compared by key, in the order of each key; "
        "no offsets are named"
    )
    return _row(topic, remote, -1, found, (note,))


def _row(topic: str, remote: str, partition: int, found: Findings, notes: tuple[str, ...]) -> ComparedLogs:
    counts = {kind: found.counts[kind] for kind in Kind if found.counts[kind]}
    return ComparedLogs(
        topic,
        remote,
        partition,
        counts=counts,
        differences=tuple(found.differences),
        keeps_offsets=found.keeps_offsets and bool(found.counts[Kind.EQUAL]),
        notes=notes,
        findings=found,
    )


def _notes(found: Findings, source: Log, target: Log) -> tuple[str, ...]:
    """Return the reservations about the counts."""
    notes = []
    if not source.times:
        notes.append("timestamps were not compared")
    if found.counts[Kind.EXTRA]:
        notes.append(f"extra records were looked for among the {REMEMBERED:,} source offsets before them")
    if found.counts[Kind.LAGGING]:
        notes.append("lagging records come after all that the target has: they are still to come, or lost at its end")
    if found.counts[Kind.EXPIRED]:
        notes.append(f"the logs start at {source.log_start} and {target.log_start}: what came before was not compared")
    if sum(each.count for each in found.differences) < sum(
        count for kind, count in found.counts.items() if kind is not Kind.EQUAL
    ):
        notes.append("more differences than are named")
    return tuple(notes)


def _find_moved(found: Sequence[Findings]) -> None:
    """Records that are missing in one partition and extra in another have changed their partition."""
    elsewhere = {mark: number for number, each in enumerate(found) for mark in each.extra}
    for number, each in enumerate(found):
        for mark in [mark for mark in each.missing if elsewhere.get(mark, number) != number]:
            other = found[elsewhere[mark]]
            pairs = list(zip(each.missing[mark], other.extra.pop(mark, []), strict=False))
            each.change_partition(pairs, elsewhere[mark])
            other.forget_extra([target for _, target in pairs])


def totals(rows: Sequence[ComparedLogs]) -> Counter[Kind]:
    """Records of every kind, over all rows."""
    return sum((Counter(row.counts) for row in rows), Counter())

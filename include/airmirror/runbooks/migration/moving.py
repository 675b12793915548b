"""Move groups: those of the configuration, and proposals out of what ties topics together.

Topics that one consumer group reads, or one transactional id writes, must move together; so must a Streams application's
internal topics with it. Groups are the connected components of these ties.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from airmirror.clusters.protocol.described import AclBinding
from airmirror.clusters.protocol.producers import producers_by_id
from airmirror.config import MoveGroup
from airmirror.naming import TopicFilter
from airmirror.partitions import grouped
from airmirror.runbooks.migration.inventory import Inventory

OWN_IDS = "airmirror."  # the beginning of a flow's own transactional ids, which stay
STREAMS_TOPICS = ("-changelog", "-repartition")
WRITES = frozenset({"WRITE", "ALL"})
_MAY = WRITES | {"READ"}


@dataclass(frozen=True)
class Moving:
    """What moves together; names of the source. ``configured``: by ``move.<name>.…``, else it is proposed.

    ``ties``: why its topics belong together, in words.
    """

    name: str
    configured: bool
    topics: tuple[str, ...]
    groups: tuple[str, ...]
    transactional_ids: tuple[str, ...]
    principals: tuple[str, ...]
    ties: tuple[str, ...] = ()


def readers(source: Inventory) -> dict[str, frozenset[str]]:
    """Topics by the consumer group that reads them, a Streams application's own topics included."""
    internal = [name for name in source.topics if name.endswith(STREAMS_TOPICS)]
    found = {}
    for group in source.groups.values():
        own = {topic for topic in internal if topic.startswith(f"{group.name}-")}
        topics = frozenset({topic for topic in group.topics if topic in source.topics} | own)
        if topics:
            found[group.name] = topics
    return found


def writers(source: Inventory) -> dict[str, frozenset[str]]:
    """Topics by the transactional id that writes them: what its producer wrote lately, what its open transaction holds, and what
    those that have ended held."""
    names = producers_by_id(source.transactions)
    found: dict[str, set[str]] = {}
    for producer in source.producers:
        if name := names.get(producer.producer_id):
            found.setdefault(name, set()).add(producer.partition.topic)
    for each in source.transactions:
        found.setdefault(each.transactional_id, set()).update(key.topic for key in each.partitions)
    for name, topics in source.past.items():
        found.setdefault(name, set()).update(topics)
    known = source.topics.keys()
    return {
        name: frozenset(topics & known)
        for name, topics in sorted(found.items())
        if topics & known and not name.startswith(OWN_IDS)
    }


def move_groups(source: Inventory, topics: Collection[str], configured: Sequence[MoveGroup]) -> tuple[Moving, ...]:
    """The configured move groups, and proposals for the rest of ``topics``, which are those that the flow replicates.

    Raises InvalidPattern.
    """
    reading, writing = readers(source), writers(source)
    found, left = [], set(topics)
    for move in configured:
        its = {topic for topic in left if TopicFilter(move.topics, ()).matches(topic)}
        left -= its
        groups = chosen_names(move.groups, source.groups, reading, its)
        ids = chosen_names(
            move.transactional_ids, {each.transactional_id for each in source.transactions}, writing, its
        )
        principals = principals_of(source.acls, its) if move.principals is None else move.principals
        found.append(Moving(move.name, True, tuple(sorted(its)), groups, ids, tuple(principals)))
    taken = {each.name for each in configured}
    for component, ties in _components(left, reading, writing):
        name = _free_name(component[0], taken)
        taken.add(name)
        found.append(
            Moving(
                name=name,
                configured=False,
                topics=component,
                groups=_of(reading, component),
                transactional_ids=_of(writing, component),
                principals=principals_of(source.acls, component),
                ties=ties,
            )
        )
    return tuple(found)


def chosen_names(
    patterns: Sequence[str] | None, names: Iterable[str], topics_of: Mapping[str, frozenset[str]], topics: set[str]
) -> tuple[str, ...]:
    """Those of ``names`` that the configuration means; None: those that have to do with ``topics``. Raises InvalidPattern."""
    if patterns is None:
        return _of(topics_of, topics)
    chosen = TopicFilter(tuple(patterns), ())
    return tuple(sorted(name for name in names if chosen.matches(name)))


def _of(topics_of: Mapping[str, frozenset[str]], topics: Collection[str]) -> tuple[str, ...]:
    wanted = set(topics)
    return tuple(sorted(name for name, its in topics_of.items() if its & wanted))


def _components(
    topics: set[str], reading: Mapping[str, frozenset[str]], writing: Mapping[str, frozenset[str]]
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return topics that are tied, in order of their names, each with the ties of more than one topic."""
    parent = {topic: topic for topic in topics}

    def root(topic: str) -> str:
        while parent[topic] != topic:
            parent[topic] = parent[parent[topic]]
            topic = parent[topic]
        return topic

    ties: list[tuple[str, str]] = []
    for what, topics_of in (("group", reading), ("transactional id", writing)):
        for name, its in sorted(topics_of.items()):
            ours = sorted(its & topics)
            for other in ours[1:]:
                parent[root(other)] = root(ours[0])
            if len(ours) > 1:
                ties.append((ours[0], f"{what} {name}: {len(ours)} topics"))
    members = grouped((root(topic), topic) for topic in sorted(topics))
    reasons = grouped((root(topic), said) for topic, said in ties)
    return [(tuple(its), tuple(reasons.get(at, ()))) for at, its in sorted(members.items(), key=lambda item: item[1])]


def principals_of(
    acls: Sequence[AclBinding] | None, topics: Collection[str], operations: Collection[str] = _MAY
) -> tuple[str, ...]:
    """Return who may do any of these ``operations``, read or write, to any of these topics."""
    ordered = sorted(topics)
    may = (a for a in acls or () if a.resource == "TOPIC" and a.permission == "ALLOW" and a.operation in operations)
    return tuple(sorted({acl.principal for acl in may if any(covers(acl, topic) for topic in ordered)}))


def covers(acl: AclBinding, name: str) -> bool:
    return name.startswith(acl.name) if acl.pattern == "PREFIXED" else acl.name in ("*", name)


def _free_name(topic: str, taken: Collection[str]) -> str:
    stem = re.sub(r"[^A-Za-z0-9_-]", "-", topic)[:90]
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    return name

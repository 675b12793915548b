"""From settings with a name in their key to what has that name, and what is wrong with it: comparisons (``compare.<name>.…``) and
move groups (``<source>-><target>.move.<name>.…``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from airmirror.config.errors import Problem
from airmirror.config.keys import COMPARE_KEYS
from airmirror.config.model import Cluster, Comparison, MoveGroup, Setting
from airmirror.config.places import Level, Place, client_setting
from airmirror.config.resolve import Placed, by_owner, flows
from airmirror.config.settings import typed
from airmirror.config.values import TOPIC, as_list, names_topic

SIDES = ("source", "target")
_LISTS = ("topics", "groups", "transactional.ids")


def comparison_problems(placed: Iterable[Placed], aliases: Collection[str]) -> Iterator[Problem]:
    """Yield the problems with the values of comparisons, apart from their types."""
    for name, given in by_owner(placed, Level.COMPARE).items():
        for side in SIDES:
            key = f"compare.{name}.{side}"
            if side not in given:
                line = min(each.line or 0 for each in given.values())
                yield Problem(line or None, key, "must be set, to one of the clusters' aliases")
            elif (setting := given[side]).value.strip() not in aliases:
                said = f"must be one of {', '.join(aliases)} (it is {setting.value!r})"
                yield Problem(setting.line, setting.key, said)
        if (rename := given.get("rename")) and not names_topic(rename.value):
            yield Problem(rename.line, rename.key, f"has no {TOPIC}; write for example east.{TOPIC}")


def comparisons(
    placed: Iterable[Placed], clusters: Mapping[str, Cluster], wrong: Collection[Place]
) -> dict[str, Comparison]:
    """The comparisons by name, but for those that something is wrong with, or with one of their clusters."""
    if any(at.level is Level.TOP and client_setting(at) for at in wrong):
        return {}
    broken = {at.owner for at in wrong if at.level is Level.COMPARE}
    unusable = {at.owner for at in wrong if at.level is Level.CLUSTER}
    found = {}
    for name, given in by_owner(placed, Level.COMPARE).items():
        if name not in broken and not unusable & {given[side].value.strip() for side in SIDES}:
            texts = {key: each.value for key, each in given.items()}
            values = {each.name.replace(".", "_"): typed(each, texts) for each in COMPARE_KEYS.values()}
            found[name] = Comparison(name=name, **values | {side: clusters[values[side]] for side in SIDES})
    return found


def move_problems(placed: Sequence[Placed]) -> Iterator[Problem]:
    """Yield what is wrong with move groups: without topics, of no flow, and names that stand in two of a flow's."""
    known, taken = flows(placed), dict[tuple[str, str, str], tuple[str, int | None]]()
    for owner, given in by_owner(placed, Level.MOVE).items():
        flow, _, name = owner.rpartition(".move.")
        line = min(each.line or 0 for each in given.values()) or None
        if "topics" not in given or not as_list(given["topics"].value):
            yield Problem(line, f"{owner}.topics", "must be set, to the topics that move together")
        if flow not in known:
            yield Problem(line, owner, f"there is no flow {flow} in this file; {flow}.enabled = true makes it one")
        for key in _LISTS:
            for each in dict.fromkeys(_listed(given, key) or ()):
                other, its_line = taken.setdefault((flow, key, each), (name, given[key].line))
                if other != name:
                    where = f" (line {its_line})" if its_line else ""
                    said = f"{each!r} is in move group {other!r} too{where}: what is in two must move with both"
                    yield Problem(given[key].line, f"{owner}.{key}", said)


def move_groups(flow: str, placed: Iterable[Placed]) -> Iterator[MoveGroup]:
    """Yield the move groups of a flow, in the order of the file, but for those without topics."""
    for owner, given in by_owner(placed, Level.MOVE).items():
        of, _, name = owner.rpartition(".move.")
        topics = _listed(given, "topics")
        if of != flow or not topics:
            continue
        principals = given["principals"].value.split(";") if "principals" in given else None
        yield MoveGroup(
            name=name,
            topics=topics,
            groups=_listed(given, "groups"),
            transactional_ids=_listed(given, "transactional.ids"),
            principals=None if principals is None else tuple(filter(None, map(str.strip, principals))),
        )


def _listed(given: dict[str, Setting], key: str) -> tuple[str, ...] | None:
    return as_list(given[key].value) if key in given else None

"""From the settings ``<source>-><target>.move.<name>.…`` to move groups, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airmirror.config.errors import Problem
from airmirror.config.model import MoveGroup
from airmirror.config.places import Level
from airmirror.config.resolve import Placed, by_owner, flows
from airmirror.config.values import as_list

_LISTS = ("topics", "groups", "transactional.ids")


def problems(placed: Iterable[Placed]) -> Iterator[Problem]:
    """Yield what is wrong with move groups: without topics, of no flow, and names that stand in two of a flow's."""
    placed = list(placed)
    known, taken = flows(placed), dict[tuple[str, str, str], tuple[str, int | None]]()
    for owner, given in by_owner(placed, Level.MOVE).items():
        flow, _, name = owner.rpartition(".move.")
        line = min((each.setting.line or 0 for each in given.values()), default=0) or None
        if "topics" not in given or not as_list(given["topics"].setting.value):
            yield Problem(line, f"{owner}.topics", "must be set, to the topics that move together")
        if flow not in known:
            yield Problem(line, owner, f"there is no flow {flow} in this file; {flow}.enabled = true makes it one")
        for key in _LISTS:
            for each in dict.fromkeys(_listed(given, key) or ()):
                other, its_line = taken.setdefault((flow, key, each), (name, given[key].setting.line))
                if other != name:
                    where = f" (line {its_line})" if its_line else ""
                    said = f"{each!r} is in move group {other!r} too{where}: what is in two must move with both"
                    yield Problem(given[key].setting.line, f"{owner}.{key}", said)


def move_groups(flow: str, placed: Iterable[Placed]) -> tuple[MoveGroup, ...]:
    """The move groups of a flow, in the order of the file, but for those without topics."""
    found = []
    for owner, given in by_owner(placed, Level.MOVE).items():
        of, _, name = owner.rpartition(".move.")
        topics = _listed(given, "topics")
        if of != flow or not topics:
            continue
        principals = given["principals"].setting.value.split(";") if "principals" in given else None
        found.append(
            MoveGroup(
                name=name,
                topics=topics,
                groups=_listed(given, "groups"),
                transactional_ids=_listed(given, "transactional.ids"),
                principals=None if principals is None else tuple(filter(None, map(str.strip, principals))),
            )
        )
    return tuple(found)


def _listed(given: dict[str, Placed], key: str) -> tuple[str, ...] | None:
    return as_list(given[key].setting.value) if key in given else None

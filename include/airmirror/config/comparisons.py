"""From the settings ``compare.<name>.…`` to comparisons, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from airmirror.config.errors import Problem
from airmirror.config.keys import COMPARE_KEYS
from airmirror.config.model import Cluster, Comparison
from airmirror.config.places import Level, Place, client_setting
from airmirror.config.resolve import Placed, by_owner
from airmirror.config.values import TOPIC, as_boolean, as_integer, as_list, names_topic

SIDES = ("source", "target")


def problems(placed: Iterable[Placed], aliases: Collection[str]) -> Iterator[Problem]:
    """Yield the problems with the values of comparisons, apart from their types."""
    for name, given in by_owner(placed, Level.COMPARE).items():
        for side in SIDES:
            key = f"compare.{name}.{side}"
            if side not in given:
                line = min((each.setting.line or 0 for each in given.values()), default=0)
                yield Problem(line or None, key, "must be set, to one of the clusters' aliases")
            elif given[side].setting.value.strip() not in aliases:
                setting = given[side].setting
                yield Problem(
                    setting.line, setting.key, f"must be one of {', '.join(aliases)} (it is {setting.value!r})"
                )
        if "rename" in given and not names_topic(given["rename"].setting.value):
            setting = given["rename"].setting
            yield Problem(setting.line, setting.key, f"has no {TOPIC}; write for example east.{TOPIC}")


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
        if name not in broken and not unusable & {given[side].setting.value.strip() for side in SIDES}:
            values = {key: each.default for key, each in COMPARE_KEYS.items() if each.default is not None}
            values |= {key: each.setting.value.strip() for key, each in given.items()}
            found[name] = _comparison(name, values, clusters)
    return found


def _comparison(name: str, values: Mapping[str, str], clusters: Mapping[str, Cluster]) -> Comparison:
    return Comparison(
        name=name,
        source=clusters[values["source"]],
        target=clusters[values["target"]],
        topics=as_list(values["topics"]),
        topics_exclude=as_list(values["topics.exclude"]),
        rename=values["rename"],
        schedule=values.get("schedule") or None,
        sample=values.get("sample", ""),
        seed=as_integer(values["sample.seed"]),
        ignore_timestamps=as_boolean(values["ignore.timestamps"]),
        spark_conn_id=values.get("spark.conn.id") or None,
    )

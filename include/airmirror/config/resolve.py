"""From the settings of a file to clusters and flows: which level's value counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

from airmirror.config.keys import KEYS
from airmirror.config.model import Cluster, Flow, Setting, Window
from airmirror.config.places import READ_AT, Level, Place, client_setting
from airmirror.config.settings import KEY_OF, Settings, typed
from airmirror.config.values import SOURCE, as_boolean, as_integer, as_list, is_secret


@dataclass(frozen=True)
class Placed:
    """A setting and its key, taken apart."""

    at: Place
    setting: Setting


@dataclass(frozen=True)
class Effective:
    """The value of a key that counts for a flow. ``setting`` says where it was set; None: the default counts."""

    key: str
    value: str
    setting: Setting | None


def flows(placed: Iterable[Placed]) -> tuple[str, ...]:
    """The names of the flows in the order in which the file names them first."""
    return tuple(dict.fromkeys(entry.at.owner for entry in placed if entry.at.level is Level.FLOW))


def by_owner(placed: Iterable[Placed], level: Level) -> dict[str, dict[str, Setting]]:
    """The settings of a level, by their owner and by name."""
    found: dict[str, dict[str, Setting]] = {}
    for each in placed:
        if each.at.level is level:
            found.setdefault(each.at.owner, {})[each.at.name] = each.setting
    return found


def effective(name: str, placed: Iterable[Placed]) -> Iterator[Effective]:
    """Every key of the table that the flow reads and that is set or has a default, in the table's order."""
    source, _, target = name.partition("->")
    owners = {Level.TOP: "", Level.CLUSTER: target, Level.FLOW: name}
    found: dict[str, Placed] = {}
    for entry in placed:
        key = KEYS.get(entry.at.name)
        if key and entry.at.level in READ_AT[key.scope] and entry.at.owner == owners[entry.at.level]:
            before = found.get(key.name)
            if before is None or entry.at.level >= before.at.level:
                found[key.name] = entry
    for key in KEYS.values():
        if Level.FLOW in READ_AT[key.scope]:
            if key.name in found:
                yield Effective(key.name, found[key.name].setting.value, found[key.name].setting)
            elif key.default is not None:
                yield Effective(key.name, key.default.replace(SOURCE, source), None)


def client_settings(alias: str, placed: Iterable[Placed], name: str = "", side: str = "") -> dict[str, Setting]:
    """A cluster's client settings by property: top level, then its own, then the flow's for both sides or for one."""
    found = []
    for entry in placed:
        setting = client_setting(entry.at) if entry.at.owner in ("", alias, name) else None
        if setting and (entry.at.level is not Level.FLOW or side in setting.sides):
            found.append(((entry.at.level, -len(setting.sides)), setting.property, entry.setting))
    return {property_: setting for _, property_, setting in sorted(found, key=lambda each: each[0])}


def cluster(alias: str, placed: Iterable[Placed], name: str = "", side: str = "") -> Cluster:
    """A cluster, as it is in the file or as one side (``source``, ``target``) of a flow sees it."""
    properties = {
        # Kafka trims every value but passwords.
        property_: setting.value if is_secret(property_) else setting.value.strip()
        for property_, setting in client_settings(alias, placed, name, side).items()
    }
    servers = as_list(properties.pop("bootstrap.servers", ""))
    return Cluster(alias, servers, properties)


def flow(name: str, placed: Sequence[Placed]) -> Flow:
    source_alias, _, target_alias = name.partition("->")
    source = cluster(source_alias, placed, name, "source")
    target = cluster(target_alias, placed, name, "target")
    consumer = source.client("consumer")
    settings = {each.key: each.value for each in effective(name, placed)}
    of_window = {each.name: KEY_OF.get(f"window_{each.name}") or KEY_OF[each.name] for each in fields(Window)}
    return Flow(
        source=source,
        target=target,
        enabled=as_boolean(settings["enabled"]),
        topics=as_list(settings["topics"]),
        topics_exclude=as_list(settings["topics.exclude"]),
        replication_policy_class=settings["replication.policy.class"].strip(),
        replication_policy_separator=settings["replication.policy.separator"].strip(),
        internal_topic_separator_enabled=as_boolean(settings["replication.policy.internal.topic.separator.enabled"]),
        replication_factor=as_integer(settings["replication.factor"]),
        tasks_max=None if settings["tasks.max"].strip() == "auto" else as_integer(settings["tasks.max"]),
        isolation_level=consumer.get("isolation.level", "read_committed").strip().lower(),
        auto_offset_reset=consumer.get("auto.offset.reset", "earliest").strip().lower(),
        window=Window(**{name: typed(key, settings) for name, key in of_window.items()}),
        settings=Settings.of(settings),
        aliases=next((as_list(each.setting.value) for each in placed if each.setting.key == "clusters"), ()),
    )

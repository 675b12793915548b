"""Rows for tables: what every key means, and what counts for a flow and where it was set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airmirror.config.errors import Problem
from airmirror.config.keys import COMPARE_KEYS, FAMILIES, KEYS, MOVE_KEYS, Key, KeyScope, Use
from airmirror.config.keys.clients import PREFIXES
from airmirror.config.model import Configuration, Setting
from airmirror.config.places import Level, place
from airmirror.config.resolve import Placed, client_settings, effective


@dataclass(frozen=True, kw_only=True)
class KeyRow:
    """One key, or keys of one form: what it is, where it is read, and what it does here."""

    name: str
    type: str = ""
    default: str = ""
    scope: str
    here: str
    doc: str


@dataclass(frozen=True)
class ValueRow:
    """The effective value for a flow: ``value`` masked if secret, ``origin`` "default", "line 12" or "override"."""

    key: str
    value: str
    origin: str


def explain() -> list[KeyRow]:
    """Every key of the table by name, then keys that end as one likes, and prefixes of client settings."""
    keys = [_row(key.name, key) for key in sorted(KEYS.values(), key=lambda key: key.name)]
    named = [
        _row(f"{prefix}.{key.name}", key)
        for prefix, table in (("compare.<name>", COMPARE_KEYS), ("<source>-><target>.move.<name>", MOVE_KEYS))
        for key in table.values()
    ]
    families = [
        KeyRow(
            name=f"{prefix}…",
            scope=KeyScope.FLOW,
            here=f"{Use.WITHOUT_EFFECT}: {reason}" if reason else Use.USED,
            doc=doc,
        )
        for prefix, (doc, reason) in sorted(FAMILIES.items())
    ]
    prefixes = [KeyRow(name=name, scope=scope, here=Use.USED, doc=doc) for name, (scope, doc) in PREFIXES.items()]
    return keys + named + families + prefixes


def _row(name: str, key: Key) -> KeyRow:
    return KeyRow(name=name, type=key.type, default=key.default or "", scope=key.scope, here=key.here, doc=key.doc)


def resolve(configuration: Configuration, name: str) -> list[ValueRow]:
    """Every key and client setting that counts for a flow that the file names, client settings as ``source.…``."""
    settings = placed(configuration)
    rows = [
        ValueRow(each.key, each.setting.shown if each.setting else each.value, _origin(each.setting))
        for each in effective(name, settings)
    ]
    for side, alias in zip(("source", "target"), name.split("->"), strict=True):
        for key, setting in sorted(client_settings(alias, settings, name, side).items()):
            rows.append(ValueRow(f"{side}.{key}", setting.shown, _origin(setting)))
    return rows


def problem_of(configuration: Configuration, name: str, key: str, reason: object) -> Problem:
    """The problem of a key's effective value for a flow: with the line that sets it, and the key with its prefix."""
    settings = placed(configuration)
    found = next((each.setting for each in effective(name, settings) if each.key == key), None)
    if found is None:  # a move group's keys are not in the table of a flow's
        found = next((each.setting for each in settings if each.setting.key == f"{name}.{key}"), None)
    return Problem(found.line if found else None, found.key if found else f"{name}.{key}", str(reason))


def connections_of(configuration: Configuration) -> dict[str, str]:
    """The Airflow connections that clusters take their settings from, by alias; none where settings of the cluster were
    given over the file (``--secrets``): they stand for the connection's."""
    found, given = {}, set()
    for entry in placed(configuration):
        if entry.at.level is Level.CLUSTER:
            if entry.setting.line is None:
                given.add(entry.at.owner)
            elif entry.at.name == "airflow.conn.id" and entry.setting.value.strip():
                found[entry.at.owner] = entry.setting.value.strip()
    return {alias: conn_id for alias, conn_id in found.items() if alias not in given}


def flows_of(configuration: Configuration, problems: Iterable[Problem]) -> set[str]:
    """The flows that problems are of: a flow's own, those of a cluster, or all for a key at the top level."""
    found: set[str] = set()
    for problem in problems:
        at = place(problem.key, tuple(configuration.clusters))
        found |= {
            name
            for name in configuration.flows
            if at.level is not Level.COMPARE
            and (at.level is Level.TOP or at.owner.partition(".move.")[0] == name or at.owner in name.split("->"))
        }
    return found


def placed(configuration: Configuration) -> list[Placed]:
    """The settings of a configuration, their keys taken apart."""
    aliases = tuple(configuration.clusters)
    return [Placed(place(setting.key, aliases), setting) for setting in configuration.settings]


def _origin(setting: Setting | None) -> str:
    if setting is None:
        return "default"
    return f"line {setting.line}" if setting.line else "override"

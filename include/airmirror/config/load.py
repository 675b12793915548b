"""From the text of a mm2.properties file to a Configuration, or to everything that is wrong with it at once.

A text may also be what Strimzi or Connect have (``foreign``): it becomes the same settings, with its own lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from airmirror.config import named, properties, providers
from airmirror.config.errors import ConfigurationError, Problem
from airmirror.config.foreign import translation as foreign
from airmirror.config.foreign.translation import Translation
from airmirror.config.keys import KEYS
from airmirror.config.model import Configuration, Flow, Setting
from airmirror.config.places import OWN_KEYS, READ_AT, Level, Place, client_setting, place, unread
from airmirror.config.resolve import Placed, cluster, flow, flows
from airmirror.config.values import SOURCE, as_list, check, check_client


def load(path: Path, overrides: Mapping[str, str] | None = None) -> Configuration:
    """The configuration in a file; ``overrides`` (full key → value) win over its lines. Raises ConfigurationError."""
    return parse(properties.read(Path(path)), str(path), overrides)


def parse(text: str, name: str, overrides: Mapping[str, str] | None = None) -> Configuration:
    """The configuration in a text; ``name`` is its path in errors. Raises ConfigurationError."""
    found = _build(_given(text, name, overrides), name)
    if found.configuration is None or found.problems:
        raise ConfigurationError(name, found.problems)
    return found.configuration


@dataclass(frozen=True)
class Survey:
    """The problems of a file, and the configuration that is left without the settings in question (None: nothing)."""

    configuration: Configuration | None
    problems: tuple[Problem, ...]


def survey(path: Path, overrides: Mapping[str, str] | None = None) -> Survey:
    """A file looked through to its end, whatever is wrong with single settings. Raises ConfigurationError if it can't be read."""
    name = str(path)
    given = _given(properties.read(Path(path)), name, overrides)
    found = _build(given, name)
    if found.problems:
        wrong = {problem.key for problem in found.problems}
        sound = tuple(setting for setting in given.settings if setting.key not in wrong)
        rest = _build(replace(given, settings=sound), name).configuration
        if rest is not None and found.configuration is not None:  # a comparison is what its settings say, or not there
            rest = replace(rest, comparisons=found.configuration.comparisons)
        return Survey(rest, found.problems)
    return found


def translated(text: str, name: str, secrets_from: str | None = None) -> Translation:
    """The settings of a resource or of JSON, with all that is to be said of them; no reference to a secret is followed.

    Raises ConfigurationError.
    """
    given = foreign.translate(text, name, secrets_from)
    unresolved = tuple(setting for setting in given.settings if not setting.key.startswith("config.providers"))
    found = _build(replace(given, settings=unresolved), name)
    return replace(given, notes=found.configuration.notes if found.configuration else (), problems=found.problems)


def _given(text: str, name: str, overrides: Mapping[str, str] | None) -> Translation:
    is_foreign = foreign.is_foreign(text)
    given = foreign.translate(text, name) if is_foreign else Translation(tuple(properties.settings(text, name)))
    over = (Setting(key, value, None) for key, value in (overrides or {}).items())
    return replace(given, settings=(*given.settings, *over))


def _build(given: Translation, name: str) -> Survey:
    settings = {setting.key: setting for setting in given.settings}
    # Overrides are values, of an Airflow connection for one: whoever writes it reads no environment and no file of ours, and a
    # password from elsewhere may look like a reference.
    resolved, problems = providers.transform([setting for setting in settings.values() if setting.line is not None])
    resolved += [setting for setting in settings.values() if setting.line is None]
    aliases, alias_problems = _aliases(settings.get("clusters"))
    problems += given.problems
    if not aliases:
        return Survey(None, tuple(problems or alias_problems))
    placed = [Placed(place(setting.key, aliases), setting) for setting in resolved]
    errors, notes = _judge(placed, aliases)
    problems += [*alias_problems, *errors, *named.comparison_problems(placed, aliases), *named.move_problems(placed)]
    problems += _without_servers(placed, aliases, settings["clusters"].line)
    is_readable = all(problem.key not in settings for problem in problems)
    clusters = {alias: cluster(alias, placed) for alias in aliases}
    wrong = [place(each.key, aliases) for each in problems]
    configuration = Configuration(
        path=name,
        clusters=clusters,
        flows={flow_name: _flow(flow_name, placed) for flow_name in flows(placed)} if is_readable else {},
        notes=tuple(sorted([*given.notes, *_repeated(given.settings), *notes], key=lambda note: note.line or 0)),
        settings=tuple(resolved),
        comparisons=named.comparisons(placed, clusters, wrong),
    )
    return Survey(configuration, tuple(sorted(problems, key=lambda problem: problem.line or 0)))


def _flow(name: str, placed: Sequence[Placed]) -> Flow:
    return replace(flow(name, placed), moves=tuple(named.move_groups(name, placed)))


def _aliases(clusters: Setting | None) -> tuple[tuple[str, ...], list[Problem]]:
    """The aliases in the order of the file, each once; they become parts of topic names."""
    aliases = as_list(clusters.value) if clusters else ()
    if not clusters or not aliases:
        line = clusters.line if clusters else None
        return (), [Problem(line, "clusters", "must name the clusters, as in: east, west")]
    problems = [
        Problem(clusters.line, "clusters", f"{alias!r} can't be an alias: only letters, digits, '.', '_' and '-' can")
        for alias in aliases
        if not re.fullmatch(r"[A-Za-z0-9._-]+", alias)
    ]
    repeated = sorted({alias for alias in aliases if aliases.count(alias) > 1})
    problems += [Problem(clusters.line, "clusters", f"names {alias!r} more than once") for alias in repeated]
    return tuple(dict.fromkeys(aliases)), problems


def _judge(placed: Sequence[Placed], aliases: Sequence[str]) -> tuple[list[Problem], list[Problem]]:
    """Errors and notes: keys that nothing reads, values of the wrong kind."""
    errors: list[Problem] = []
    notes: list[Problem] = []
    for entry in placed:
        at, setting = entry.at, entry.setting
        source, _, target = at.owner.partition("->")
        if at.level is Level.FLOW and source == target:
            errors.append(Problem(setting.line, setting.key, "source and target are the same cluster"))
        elif reason := unread(at, aliases):
            kind = errors if reason.error else notes
            kind.append(Problem(setting.line, setting.key, reason.message, reason.closest))
        elif at.name == "topics" and not as_list(setting.value):
            notes.append(Problem(setting.line, setting.key, "is empty: no topic is replicated (.* is every one)"))
        try:
            _check(at, setting.value, _sources(at, placed))
        except ValueError as error:
            errors.append(Problem(setting.line, setting.key, f"{error} (it is {setting.shown.strip()!r})"))
    return errors, notes


def _check(at: Place, value: str, sources: Iterable[str]) -> None:
    key = OWN_KEYS.get(at.level, KEYS).get(at.name)
    if key and at.level in READ_AT[key.scope]:
        check(key, value)
        if SOURCE in (key.default or ""):
            for source in sources:
                check(key, value, source)
        if at.name == "bootstrap.servers":
            check_client(at.name, value)
    elif not key and (setting := client_setting(at)):
        role, _, name = setting.property.partition(".")
        check_client(name if role in ("consumer", "producer", "admin") else setting.property, value)


def _sources(at: Place, placed: Iterable[Placed]) -> set[str]:
    """The source clusters of the flows that read a key at this place."""
    pairs = {name.partition("->")[::2] for name in flows(placed)}
    return {source for source, target in pairs if at.level is Level.TOP or at.owner in (target, f"{source}->{target}")}


def _without_servers(placed: Sequence[Placed], aliases: Iterable[str], line: int | None) -> list[Problem]:
    given = {entry.at.owner for entry in placed if entry.at.name in ("bootstrap.servers", "airflow.conn.id")}
    message = "must be set, as in: broker-1:9092, broker-2:9092"
    return [Problem(line, f"{alias}.bootstrap.servers", message) for alias in aliases if alias not in given]


def _repeated(given: Sequence[Setting]) -> list[Problem]:
    last = {setting.key: setting for setting in given}
    return [
        Problem(setting.line, setting.key, f"has no effect: line {last[setting.key].line} sets it again")
        for setting in given
        if setting is not last[setting.key] and last[setting.key].line is not None
    ]

"""References to secrets in translated settings: config providers that are there, or what replaces Kubernetes' secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from airmirror.config.errors import Problem
from airmirror.config.model import Setting
from airmirror.config.providers import PACKAGE

FILES, ENVIRONMENT, AIRFLOW = "files:", "environment", "airflow"
DEFAULT = f"{FILES}/mnt/secrets"

_PROVIDERS = {
    **dict.fromkeys(("env", "strimzienv"), "EnvVarConfigProvider"),
    **dict.fromkeys(("file", "strimzifile"), "FileConfigProvider"),
    **dict.fromkeys(("directory", "dir", "strimzidir"), "DirectoryConfigProvider"),
}
"""The names that Strimzi gives providers, and that Connect's documentation and most workers give them."""

_SECRETS = ("strimzisecrets", "secrets")
_REFERENCE = re.compile(r"\$\{([^}:]*):(?:([^}]*?):)?([^}:]*)\}")


def is_place(text: str) -> bool:
    """Return whether a text says where secrets are: ``files:<directory>``, ``environment`` or ``airflow``."""
    return text in (ENVIRONMENT, AIRFLOW) or (text.startswith(FILES) and len(text) > len(FILES))


def with_providers(settings: Sequence[Setting], place: str) -> tuple[list[Setting], list[Problem]]:
    """The settings with the config providers that their references need, and references that nothing here can follow.

    A Kubernetes secret is a directory of ``files:<directory>``, with a file a key; or a variable
    ``<SECRET>_<KEY>`` of the environment; or (``airflow``) its cluster is an Airflow connection of the alias's name.
    """
    if place == AIRFLOW:
        settings = _connections(settings)
    used: dict[str, int] = {}
    problems = []
    found = []
    for setting in settings:
        value = _REFERENCE.sub(lambda match: _placed(match, place), setting.value)
        found.append(replace(setting, value=value))
        for name in (match[1] for match in _REFERENCE.finditer(value)):
            if name in _PROVIDERS:
                used.setdefault(name, setting.line or 0)
            else:
                problem = (
                    f"no config provider {name!r} is known here: name it env, file or directory, or write the value"
                )
                problems.append(Problem(setting.line, setting.key, problem))
    return [*_declared(used), *found], problems


def _placed(reference: re.Match[str], place: str) -> str:
    provider, path, key = reference.groups(default="")
    if provider not in _SECRETS:
        return reference[0]
    secret = path.rpartition("/")[2]  # before it the namespace
    if place == ENVIRONMENT:
        return f"${{env:{re.sub('[^A-Z0-9]', '_', f'{secret}_{key}'.upper())}}}"
    return f"${{directory:{place.removeprefix(FILES)}/{secret}:{key}}}"


def _declared(used: dict[str, int]) -> Iterator[Setting]:
    if used:
        yield Setting("config.providers", ", ".join(used), min(used.values()))
    for name, line in used.items():
        yield Setting(f"config.providers.{name}.class", f"{PACKAGE}{_PROVIDERS[name]}", line)


def _connections(settings: Sequence[Setting]) -> list[Setting]:
    """Clusters with references to Kubernetes' secrets as Airflow connections, which hold all that is said of them."""
    clusters = next((setting.value for setting in settings if setting.key == "clusters"), "")
    found = list(settings)
    for alias in (each.strip() for each in clusters.split(",")):
        own = [setting for setting in found if setting.key.startswith(f"{alias}.")]
        if any(match[1] in _SECRETS for setting in own for match in _REFERENCE.finditer(setting.value)):
            found = [setting for setting in found if setting not in own]
            found.insert(1, Setting(f"{alias}.airflow.conn.id", alias, own[0].line))
    return found

"""Kafka's config providers: ``${name:path:key}`` in a value, from the environment, a properties file or a directory."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import javaproperties

from airmirror.config.errors import Problem
from airmirror.config.model import Setting
from airmirror.config.values import as_list

PACKAGE = "org.apache.kafka.common.config.provider."
_KINDS = ("EnvVarConfigProvider", "FileConfigProvider", "DirectoryConfigProvider")
_REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
"""ConfigTransformer.DEFAULT_PATTERN: provider, path (may be missing), key."""


@dataclass(frozen=True)
class Provider:
    """One of Kafka's three providers with its parameters."""

    kind: str
    allowlist: str | None = None
    paths: tuple[str, ...] = ()

    def get(self, path: str, key: str) -> str:
        """The value of a key. Raises LookupError, OSError, ValueError or re.error."""
        if self.kind == "EnvVarConfigProvider":
            if self.allowlist is not None and not re.fullmatch(self.allowlist, key):
                raise LookupError(f"the environment variable {key} is not in allowlist.pattern")
            if key not in os.environ:
                raise LookupError(f"the environment variable {key} is not set")
            return os.environ[key]
        is_directory = self.kind == "DirectoryConfigProvider"
        if is_directory and (key != Path(key).name or key == ".."):  # Kafka's lists the directory
            raise LookupError(f"{key} is no file's name in {path}")
        file = Path(path) / key if is_directory else Path(path)
        if self.paths and not any(file.resolve().is_relative_to(Path(allowed).resolve()) for allowed in self.paths):
            raise LookupError(f"{file} is not in allowed.paths")
        if is_directory:
            return file.read_text()
        with file.open("rb") as lines:
            values = javaproperties.load(lines)
        if key not in values:
            raise LookupError(f"{file} has no key {key}")
        return str(values[key])


def transform(settings: list[Setting]) -> tuple[list[Setting], list[Problem]]:
    """The settings with every reference replaced once, and what can't be replaced."""
    providers, problems = _providers(settings)
    transformed = []
    for setting in settings:
        try:
            value = _replaced(setting.value, providers)
        except (LookupError, OSError, ValueError, re.error) as error:
            problems.append(Problem(setting.line, setting.key, _reason(error)))
        else:
            reference = setting.value if value != setting.value else ""
            transformed.append(replace(setting, value=value, reference=reference))
    return transformed, problems


def _reason(error: Exception) -> str:
    """An error of a provider in words that hold no value."""
    if isinstance(error, OSError):
        return f"{error.strerror}: {error.filename}"
    if isinstance(error, ValueError):
        return f"a config provider can't read it: {type(error).__name__}"
    return str(error.args[0]) if isinstance(error, LookupError) else f"allowlist.pattern: {error}"


def _replaced(value: str, providers: Mapping[str, Provider]) -> str:
    def fetch(reference: re.Match[str]) -> str:
        provider = providers.get(reference[1])
        # As Kafka does: what looks like a reference to an unnamed provider is an ordinary value.
        return provider.get(reference[2] or "", reference[3]) if provider else reference[0]

    return _REFERENCE.sub(fetch, value)


def _providers(settings: list[Setting]) -> tuple[dict[str, Provider], list[Problem]]:
    values = {setting.key: setting for setting in settings}
    providers: dict[str, Provider] = {}
    problems = []
    names = values.get("config.providers")
    for name in as_list(names.value) if names else ():
        prefix = f"config.providers.{name}"
        class_ = values.get(f"{prefix}.class")
        kind = class_.value.strip().removeprefix(PACKAGE) if class_ else ""
        if kind in _KINDS:
            allowlist = values.get(f"{prefix}.param.allowlist.pattern")
            paths = values.get(f"{prefix}.param.allowed.paths")
            allowed = as_list(paths.value) if paths else ()
            providers[name] = Provider(kind, allowlist.value if allowlist else None, allowed)
        else:
            wrong = class_ or names
            problem = f"must be one of {', '.join(PACKAGE + kind for kind in _KINDS)}"
            problems.append(Problem(wrong.line if wrong else None, f"{prefix}.class", problem))
    return providers, problems

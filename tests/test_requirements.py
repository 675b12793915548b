"""The pinned versions agree: PySpark with its client, executors' packages with ours, what is tried with what Airflow forces."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support import ROOT, installed
from support.resolution import AIRFLOWS, CASES, Case, install_uv, kept, resolve, strangers

# Spark brings these to every executor that runs Python.
SPARKS_OWN = frozenset({"pyarrow", "pyspark"})
# What a task imports before its slot runs, and the codecs, in a Python that lacks the modules named as arguments.
A_SLOT = """
import sys
class Lacking:
    def find_spec(name, path, target=None):
        if name.partition(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(f"no module {name}", name=name)
sys.meta_path.insert(0, Lacking)
from airmirror.on_spark import tasks
from airmirror.slot import attempts
from airmirror.native import compiler
import backports.zstd, cramjam, lz4.frame, snappy
"""


def pins(file: str) -> list[Requirement]:
    lines = (ROOT / file).read_text().splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def version(name: str) -> str:
    (pin,) = (pin for pin in pins("requirements.txt") if pin.name == name)
    return str(pin.specifier).removeprefix("==")


def test_pyspark_and_its_client_are_of_one_version() -> None:
    # They own the same folder: with two versions, whichever was installed last wins and imports fail.
    assert version("pyspark") == version("pyspark-client")
    assert metadata.version("pyspark") == metadata.version("pyspark-client") == version("pyspark")


def test_what_is_installed_is_what_is_pinned() -> None:
    pinned = {
        pin.name: str(pin.specifier) for pin in pins("requirements.txt") if not pin.marker or pin.marker.evaluate()
    }
    assert len(pinned) > 150
    assert {name: f"=={metadata.version(name)}" for name in pinned} == pinned


def test_everything_is_pinned_exactly() -> None:
    for file in ("requirements.txt", "requirements-executor.txt"):
        for pin in pins(file):
            assert [specifier.operator for specifier in pin.specifier] == ["=="], f"{file}: {pin}"


def test_executors_have_the_versions_of_the_lock() -> None:
    lock = set(map(str, pins("requirements.txt")))
    executor = set(map(str, pins("requirements-executor.txt")))
    assert executor
    assert executor <= lock


def test_executors_have_all_that_their_packages_need() -> None:
    names = {canonicalize_name(pin.name) for pin in pins("requirements-executor.txt")}
    for name in names:
        for line in metadata.requires(name) or []:
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                assert canonicalize_name(needed.name) in names, f"{name} needs {needed}"


@pytest.mark.seconds
def test_a_slot_imports_nothing_that_executors_lack() -> None:
    given = {canonicalize_name(pin.name) for pin in pins("requirements-executor.txt")} | SPARKS_OWN | {"airmirror"}
    lacking = {
        module
        for module, distributions in metadata.packages_distributions().items()
        if not given & set(map(canonicalize_name, distributions))
    }
    assert "sqlalchemy" in lacking
    slot = subprocess.run([sys.executable, "-c", A_SLOT, *lacking], capture_output=True, text=True, check=False)
    assert slot.returncode == 0, slot.stderr


@pytest.fixture(scope="module")
def uv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_uv(tmp_path_factory.mktemp("uv"))


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.airflow}-{case.python}-{case.extras}")
def test_it_installs_beside_every_airflow_that_it_runs_on(case: Case, uv: Path) -> None:
    assert resolve(uv, case) == ""


def test_what_is_kept_of_airflow_s_constraints_is_all_that_names_our_packages() -> None:
    """A line that is not kept lets the resolver choose another version than managed Airflow forces."""
    locked = [pin.name for pin in pins("requirements.txt")]
    for airflow in (each for each, has_constraints in AIRFLOWS.items() if has_constraints):
        assert len(kept(airflow)) > 150 and strangers(locked, kept(airflow)) == [], airflow
        named = [line for line in kept(airflow) if not line.startswith("#")]
        without = strangers(locked, named)
        assert "numba" in without and not [name for name in without if name.startswith("apache-airflow-providers-")]


def test_an_environment_is_made_anew_where_anything_else_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[list[str]] = []

    def run(command: list[object], **_: object) -> None:
        words = [str(word) for word in command]
        made.append(words)
        (tmp_path / "any" / "bin").mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(installed, "INSTALLED", tmp_path)
    monkeypatch.setattr(installed, "install_uv", lambda directory: directory)
    monkeypatch.setattr(subprocess, "run", run)
    asked = [
        (["one"], ["one==1"], True),
        (["one"], ["one==1"], False),
        (["one"], ["one==2"], True),
        (["one", "two"], ["one==2"], True),
        (["one", "two"], ["one==2"], False),
    ]
    for packages, limits, anew in asked:
        made.clear()
        python = installed.environment("any", installed.HERE, packages, limits)
        assert python == tmp_path / "any" / "bin" / "python" and bool(made) is anew, (packages, limits)
        assert not anew or made[-1][-len(packages) :] == packages
        assert (tmp_path / "any" / "constraints.txt").read_text() == "\n".join(limits)

"""The pinned versions agree: PySpark with its client, and the executors' packages with ours."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support import ROOT
from support.resolution import CASES, Case, install_uv, resolve

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

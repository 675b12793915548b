"""What pip would install of the wheel, beside each Airflow that it says it runs on: whether there is a set of versions at all.

The package index is asked, for every Airflow and every Python.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import venv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from support import ROOT

KEPT = ROOT / "tests" / "constraints"
PYTHONS = ("3.11", "3.12", "3.13")
# An Airflow with its own constraints, as managed Airflow has it, and one as the index has it.
AIRFLOWS = {"3.2.1": True, "3.2.2": False, "3.3.1": True, "3.3.2": False}
# The two own one folder, so that a whole Spark must be of the version of the client that the constraints name.
WHOLE_SPARK = {"3.2.1": "pyspark==4.1.1", "3.3.1": "pyspark==4.2.0"}
SOURCES_ONLY = ("pyspark", "pyspark-client")  # all others must have a wheel: nothing is compiled where Airflow runs


@dataclass(frozen=True)
class Case:
    """An Airflow, a Python, and what is asked for beside them."""

    airflow: str
    python: str
    extras: str

    def __str__(self) -> str:
        kept = "its constraints" if AIRFLOWS[self.airflow] else "as the index has it"
        return f"Airflow {self.airflow} ({kept}), Python {self.python}, airmirror[{self.extras}]"


CASES = [Case(airflow, python, extras) for airflow in AIRFLOWS for python in PYTHONS for extras in ("airflow", "all")]
_UNNAMED = "# It has no line for: "


def kept(airflow: str) -> list[str]:
    """The lines of an Airflow's own constraints that are kept here; none for an Airflow as the index has it."""
    return (KEPT / f"airflow-{airflow}.txt").read_text().splitlines() if AIRFLOWS[airflow] else []


def strangers(names: Iterable[str], lines: Sequence[str]) -> list[str]:
    """The packages that neither a line of the constraints names nor the list of those of which Airflow names none."""
    known = {line.partition("==")[0] for line in lines if not line.startswith("#")}
    known |= {name for line in lines if line.startswith(_UNNAMED) for name in line.removeprefix(_UNNAMED).split()}
    return sorted({str(canonicalize_name(name)) for name in names} - {canonicalize_name(name) for name in known})


def install_uv(directory: Path) -> Path:
    """The resolver, of the version that the Makefile compiles requirements with, in an environment of its own."""
    found = re.search(r"^UV_VERSION := (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found
    venv.create(directory, with_pip=True)
    subprocess.run([directory / "bin" / "pip", "install", "--quiet", f"uv=={found[1]}"], check=True)
    return directory / "bin" / "uv"


def resolve(uv: Path, case: Case) -> str:
    """What stands in the way of installing the wheel there: nothing, or the resolver's words."""
    lines = kept(case.airflow)
    limits = [f"apache-airflow=={case.airflow}", *lines]
    if case.extras == "all" and case.airflow in WHOLE_SPARK:
        limits.append(WHOLE_SPARK[case.airflow])
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(limits))
        file.flush()
        command = [uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--no-emit-index-url"]
        command += ["--only-binary", ":all:", *(word for name in SOURCES_ONLY for word in ("--no-binary", name))]
        command += [
            "--python-version",
            case.python,
            "--extra",
            case.extras,
            "--constraint",
            file.name,
            "pyproject.toml",
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip()
    found = dict(line.split("==", 1) for line in done.stdout.splitlines() if "==" in line)
    if found.get("pyspark", found["pyspark-client"]) != found["pyspark-client"]:
        return f"pyspark {found['pyspark']} and pyspark-client {found['pyspark-client']} own the same folder"
    if lines and (asked := strangers(found, lines)):
        return (
            f"{', '.join(asked)}: neither among the lines of Airflow's own constraints nor among what these do not name"
        )
    return ""

"""Environments of another Python, or with other versions of packages, without Airmirror; they stay in ``.local/installed``."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from airmirror.local import LOCAL
from support import ROOT
from support.resolution import install_uv

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
INSTALLED = LOCAL / "installed"


def python_of(minor: str) -> Path:
    """The machine's Python of that minor version. Skips the test where it has none."""
    if minor == HERE:
        return Path(sys.executable)
    if program := shutil.which(f"python{minor}"):
        ask = [program, "-c", "import sys; print(sys.executable)"]
        found = subprocess.run(ask, capture_output=True, text=True, check=False)
        if found.returncode == 0:  # else it is a shim of pyenv for what is not in PYENV_VERSION
            return Path(found.stdout.strip())
    pytest.skip(f"Python {minor} is tried too: apt install python{minor}-venv, or pyenv install {minor}")


def environment(name: str, python: str, packages: Sequence[str], limits: Sequence[str] = ()) -> Path:
    """The Python of the environment of that name, which has the packages within the limits (lines of a constraints file).

    It is made anew where something else is asked for than what it was made of.
    """
    home = INSTALLED / name
    asked = hashlib.sha256(json.dumps([python, list(packages), list(limits)]).encode()).hexdigest()
    if not (done := home / "installed").exists() or done.read_text() != asked:
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([python_of(python), "-m", "venv", "--without-pip", home], check=True)
        uv = INSTALLED / "uv" / "bin" / "uv"
        if not uv.exists():
            install_uv(INSTALLED / "uv")
        (constraints := home / "constraints.txt").write_text("\n".join(limits))
        command = [uv, "pip", "install", "--quiet", "--python", home / "bin" / "python", "--constraint", constraints]
        subprocess.run([*command, *packages], check=True)
        done.write_text(asked)
    return home / "bin" / "python"


def describe(python: Path) -> None:
    """Install the last commit alone: Airflow finds a plugin by what is installed. The code that runs is for PYTHONPATH to say."""
    with tempfile.TemporaryDirectory() as sources:
        archive = Path(sources) / "sources.tar"
        subprocess.run(["git", "archive", "--output", archive, "HEAD"], cwd=ROOT, check=True)
        subprocess.run(["tar", "-xf", archive, "-C", sources], check=True)
        uv = INSTALLED / "uv" / "bin" / "uv"
        command = [uv, "pip", "install", "--quiet", "--python", python, "--no-deps", "--reinstall", sources]
        subprocess.run(command, check=True)


def needed(*extras: str) -> list[str]:
    """The packages that pyproject.toml names for these extras, and for those that they name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = list(project["dependencies"])
    for extra in extras:
        for each in project["optional-dependencies"][extra]:
            ours = re.fullmatch(r"airmirror\[(.*)]", each)
            found += needed(*ours[1].split(",")) if ours else [each]
    return list(dict.fromkeys(found))

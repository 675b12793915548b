"""The wheel and the sdist of this checkout, built by the setuptools that is installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from airmirror.web.console.registration import DIST
from support import ROOT

BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"
PACKED = ("include", "*.toml", "setup.py", "MANIFEST.in", "*.md", "LICENSE", "requirements-executor.txt")


def copy_sources(directory: Path) -> Path:
    """Copy the files that Git knows, and the console, without Git."""
    files = subprocess.run(["git", "ls-files", *PACKED], cwd=ROOT, capture_output=True, text=True, check=True)
    built = sorted(str(path.relative_to(ROOT)) for path in DIST.glob("*"))  # not in Git: make install builds it
    for name in (*files.stdout.splitlines(), *built):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes((ROOT / name).read_bytes())
    return directory


def lock_of_commands() -> str:
    """The lock without typer: the commands alone have one that brings no pydantic, Airflow may have the newest."""
    return re.sub(r"^typer==.*\n", "", (ROOT / "requirements.txt").read_text(), flags=re.MULTILINE)


def build(what: str, sources: Path, into: Path) -> Path:
    """Build ``wheel`` or ``sdist``."""
    command = [sys.executable, "-c", BUILD, f"build_{what}", str(into)]
    made = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=True)
    return into / made.stdout.split()[-1]

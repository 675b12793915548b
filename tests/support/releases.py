"""The last release beside this code: its wheel, made of the commit that CHANGELOG.md names, in a folder of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import ROOT
from support.wheels import build

COMMIT = re.compile(r"\bcommit\s`([0-9a-f]{40})`")


def last_release() -> str:
    """The commit of the last release: a tag may not have come with a clone, but this page has."""
    found = COMMIT.search((ROOT / "CHANGELOG.md").read_text())
    assert found is not None, "CHANGELOG.md names no commit to upgrade from"
    return found[1]


def install(commit: str, directory: Path) -> Path:
    """Install that commit's wheel alone: what it needs is what this environment has. Skips the test where it is not there."""
    there = subprocess.run(
        ["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True, check=False
    )
    if there.returncode != 0:
        pytest.skip("the last release is upgraded, and its commit is not in this clone: git fetch --unshallow")
    sources, place = directory / "sources", directory / "site"
    sources.mkdir(parents=True)
    archive = directory / "sources.tar"
    subprocess.run(["git", "archive", "--output", archive, commit], cwd=ROOT, check=True)
    subprocess.run(["tar", "-xf", archive, "-C", sources], check=True)
    wheel = build("wheel", sources, directory)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", "--target", place, wheel], check=True)
    return place

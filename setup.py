"""The version of a build: the commit's tag; without one the newest in CHANGELOG.md, counted in commits until it is released."""

from __future__ import annotations

import re
import subprocess
from email.parser import Parser
from pathlib import Path

from setuptools import setup

NEWEST = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - (unreleased|\d{4}-\d\d-\d\d)$", re.MULTILINE)


def version(root: Path) -> str:
    """Return the version of the sources in ``root``: a checkout, an archive of one, or an unpacked sdist."""
    if (packed := root / "PKG-INFO").is_file():
        return str(Parser().parsestr(packed.read_text(encoding="utf-8"))["Version"])
    if tag := _git(root, "describe", "--tags", "--exact-match", "--match", "v[0-9]*"):
        return tag.removeprefix("v")
    newest = NEWEST.search((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    if newest is None:
        raise ValueError("CHANGELOG.md has no line like `## [0.1.0] - unreleased`")
    number, date = newest.groups()
    return f"{number}.dev{_git(root, 'rev-list', '--count', 'HEAD') or 0}" if date == "unreleased" else number


def _git(root: Path, *words: str) -> str:
    """Return what Git answers about the checkout; "" where it has no answer, or where this is no checkout."""
    if not (root / ".git").exists():  # a folder of somebody else's checkout would have that one's tags
        return ""
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


if __name__ == "__main__":
    setup(version=version(Path(__file__).resolve().parent))

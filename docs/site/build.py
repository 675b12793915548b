"""``make site``: the pages of this checkout and those of every release, a folder for each version, and the list of them.

A release's pages are built of its tag, once; those of this checkout are built each time. It is run by the Python that has Sphinx.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.compile(r"\d+\.\d+\.\d+")
COMMIT = ".commit"  # in a release's folder: of which commit its pages are
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Airmirror: versions</title>
<h1>Airmirror</h1>
<p>The pages of each version, the newest first:</p>
<ul>
{}</ul>
</html>
"""


def make(root: Path, site: Path, build: Callable[[Path, Path], None]) -> None:
    """Put the pages of each version into the site, by ``build`` of sources into a folder, and write the list of them."""
    here, note = newest(root)
    put(site / here, lambda into: build(root, into))
    for version, commit in releases(root).items():
        if version != here and not is_of(site / version, commit):
            with tempfile.TemporaryDirectory() as sources:
                archive = subprocess.run(["git", "archive", commit], cwd=root, capture_output=True, check=True)
                subprocess.run(["tar", "-x", "-C", sources], input=archive.stdout, check=True)
                put(site / version, lambda into, sources=Path(sources): build(sources, into))
            (site / version / COMMIT).write_text(commit)
    lines = (f'<li><a href="{each}/index.html">{each}</a>{note if each == here else ""}\n' for each in versions(site))
    (site / "index.html").write_text(PAGE.format("".join(lines)))


def newest(root: Path) -> tuple[str, str]:
    """The newest version of CHANGELOG.md, and what the list says of it."""
    found = re.search(r"^## \[([\d.]+)\] - (.*)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert found, "CHANGELOG.md names no version"
    return found[1], " (unreleased)" if found[2] == "unreleased" else ""


def releases(root: Path) -> dict[str, str]:
    """Versions that have a tag, each with its commit; none where there is no Git."""
    command = ["git", "for-each-ref", "--format=%(refname:strip=2) %(objectname) %(*objectname)", "refs/tags/v*"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    found = (line.split() for line in done.stdout.splitlines())
    return {tag[1:]: commits[-1] for tag, *commits in found if VERSION.fullmatch(tag[1:])}


def is_of(folder: Path, commit: str) -> bool:
    """Whether a release's pages were built of this commit."""
    return (folder / COMMIT).is_file() and (folder / COMMIT).read_text() == commit


def put(folder: Path, build: Callable[[Path], None]) -> None:
    """Replace a folder by what is built; where that fails, it stays as it was."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = folder.with_name(f".{folder.name}")
    shutil.rmtree(fresh, ignore_errors=True)
    build(fresh)
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)


def versions(site: Path) -> list[str]:
    """The versions that the site has, the newest first."""
    found = (each.name for each in site.iterdir() if each.is_dir() and VERSION.fullmatch(each.name))
    return sorted(found, key=lambda name: tuple(map(int, name.split("."))), reverse=True)


def by_sphinx(sources: Path, into: Path) -> None:
    """Build pages with the configuration that lies among them; a broken link is an error."""
    with tempfile.TemporaryDirectory() as doctrees:
        options = ["-q", "-W", "--keep-going", "-c", sources / "docs" / "site", "-d", doctrees]
        subprocess.run([sys.executable, "-m", "sphinx", *options, sources, into], check=True)


if __name__ == "__main__":
    make(ROOT, Path(sys.argv[1]).resolve(), by_sphinx)

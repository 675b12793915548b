"""The site of `make site`, by Sphinx and MyST: the pages as they lie here, in the order of docs/README.md, with a search.

A broken link, a link to a heading that is not there, and a page that docs/README.md does not name are errors.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
START = "README"

newest = re.search(r"^## \[([\d.]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
assert newest, "CHANGELOG.md names no version"

project = "Airmirror"
html_title = f"Airmirror {newest[1]}"
extensions = ["myst_parser"]
root_doc = START
include_patterns = ["*.md", "docs/*.md", "benchmarks/*.md", "examples/*.md"]
exclude_patterns = [".*", "include", "tests", "build", "dist"]
myst_heading_anchors = 6  # named as GitHub names them
highlight_language = "none"
html_theme = "furo"
html_additional_pages = {"index": "start.html"}
templates_path = ["."]
html_sidebars = {  # of furo, and the way to the pages of other versions, which build.py lists
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "versions.html",
        "sidebar/scroll-end.html",
    ]
}
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False


def setup(app: Any) -> None:
    """Give the start page the menu; Sphinx calls this."""
    app.connect("source-read", _with_menu)


def _with_menu(_app: Any, name: str, source: list[str]) -> None:
    if name == START:
        source[0] += "".join(
            f"\n```{{toctree}}\n:hidden:\n:caption: {part}\n\n{pages}\n```\n" for part, pages in _menu()
        )


def _menu() -> list[tuple[str, str]]:
    """The parts of docs/README.md that list pages, each with its pages."""
    found, seen = [], {START}
    for part, text in re.findall(
        r"^## (.+?)\n(.*?)(?=^## |\Z)", (ROOT / "docs" / "README.md").read_text(), re.M | re.S
    ):
        lines = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
        links = (posixpath.normpath(f"docs/{link}") for link in re.findall(r"\]\(([^)#]+)\.md\)", lines))
        if pages := [page for page in links if not (page in seen or seen.add(page))]:  # type: ignore[func-returns-value]
            found.append((part, "\n".join(pages)))
    first, pages = found[0]
    return [(first, f"docs/README\n{pages}"), *found[1:]]

"""The newest pages of a directory, which are kept; the names of their files."""

from __future__ import annotations

import re
from pathlib import Path

PAGES_KEPT = 200  # of a flow, one a validation; some kilobytes each


def file_name(name: str) -> str:
    """A name for a page of what is called ``name``."""
    return f"{re.sub(r'[^A-Za-z0-9_.+-]', '-', name)}.html"


def keep_newest(directory: Path, most: int) -> None:
    """Remove the oldest pages of a directory."""
    pages = sorted(directory.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in pages[most:]:
        old.unlink(missing_ok=True)

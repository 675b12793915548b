"""A directory that is the user's alone, for what is executed or secret."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path


def private_directory() -> Path | None:
    """In the user's cache, or else below the directory for temporary files; None where neither is the user's alone."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~", ".cache").expanduser())
    for directory in (home / "airmirror", Path(tempfile.gettempdir(), f"airmirror-{os.geteuid()}")):
        with contextlib.suppress(OSError):  # not writable: the next one
            directory.mkdir(0o700, parents=True, exist_ok=True)
            found = directory.lstat()
            own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
            if own and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO) and os.access(directory, os.W_OK):
                return directory
    return None

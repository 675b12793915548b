"""The library as Spark executors get it: one zip, named after the digest of its contents."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import airmirror

PACKAGE = Path(airmirror.__file__).parent


def digest() -> str:
    """A digest of the library's modules: other code is another session."""
    hasher = hashlib.sha256()
    for file in _modules():
        hasher.update(str(file.relative_to(PACKAGE)).encode() + b"\0" + file.read_bytes() + b"\0")
    return hasher.hexdigest()[:16]


def build(library_digest: str, directory: str) -> Path:
    """Write ``airmirror-<digest>.zip`` into a directory, which is the caller's."""
    archive = Path(directory) / f"airmirror-{library_digest}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for file in _modules():
            out.write(file, Path(PACKAGE.name) / file.relative_to(PACKAGE))
    return archive


def _modules() -> list[Path]:
    return sorted(file for file in PACKAGE.rglob("*.py") if "__pycache__" not in file.parts)

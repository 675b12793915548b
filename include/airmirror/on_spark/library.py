"""The library as Spark executors get it: one zip, named after the digest of its contents, and checked before it runs."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import airmirror

PACKAGE = Path(airmirror.__file__).parent
ALTERED = "airmirror: this session's library is another one"


def digest() -> str:
    """A digest of the library's modules and its suite: other code is another session."""
    return digester()(str(PACKAGE))


def build(library_digest: str, directory: str) -> Path:
    """Write ``airmirror-<digest>.zip`` into a directory, which is the caller's."""
    archive = Path(directory) / f"airmirror-{library_digest}.zip"
    # Images that can be built again to the byte have files of 1970, before the first year that a zip knows.
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as out:
        for file in (*PACKAGE.rglob("*.py"), *PACKAGE.glob("quality/expectations/*.yaml")):
            if "__pycache__" not in file.parts:
                out.write(file, Path(PACKAGE.name) / file.relative_to(PACKAGE))
    return archive


def digester() -> Callable[[str], str]:
    """The digest of a package by its place. A function inside a function: cloudpickle sends its code, not its name."""

    def digest_of(package: str) -> str:
        import hashlib
        import zipfile
        from pathlib import Path

        archive, name = Path(package).parent, Path(package).name
        if archive.is_file():
            with zipfile.ZipFile(archive) as content:  # all of it: whatever else lay there could be imported, too
                found = {file.removeprefix(f"{name}/"): content.read(file) for file in content.namelist()}
        else:
            every = (*Path(package).rglob("*.py"), *Path(package).glob("quality/expectations/*.yaml"))
            files = (file for file in every if "__pycache__" not in file.parts)
            found = {file.relative_to(package).as_posix(): file.read_bytes() for file in files}
        hasher = hashlib.sha256()
        for file, code in sorted(found.items()):
            hasher.update(b"%s\0%d\0%s" % (file.encode(), len(code), code))
        return hasher.hexdigest()[:32]

    return digest_of


def checker(library_digest: str) -> Callable[[], None]:
    """For a task, before it imports anything of the library: raises ImportError (ALTERED) where it has another digest.

    As ``digester`` it travels as code: what a session holds may have been put there by someone else.
    """
    digest_of, altered = digester(), ALTERED

    def check() -> None:
        import importlib.util
        import os
        import sys

        # A session of Spark Connect has a directory of its own on the path, named after its id: the library is alone in it.
        for home in {os.path.dirname(each) for each in sys.path if each.endswith(f"airmirror-{library_digest}.zip")}:
            others = sorted(set(os.listdir(home)) - {f"airmirror-{library_digest}.zip"})
            if os.path.basename(home).count("-") == 4 and others:
                raise ImportError(f"{altered}: with it came {', '.join(others[:5])}")
        spec = importlib.util.find_spec("airmirror")  # which does not run it
        found = digest_of(os.path.dirname(spec.origin)) if spec is not None and spec.origin else "none"
        if found != library_digest:
            raise ImportError(f"{altered}: {found}, not {library_digest}")

    return check

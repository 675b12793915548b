"""The archive of the classes that a broker loads (JVM's class data sharing), which spares each quick start a second of work.

``airmirror_local.prepare`` makes it. It lies in ``.local`` by version of Kafka and by Java, which takes none but its own.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from airmirror.local import LOCAL


def archive_of(java: Path, version: str, local: Path = LOCAL) -> Path:
    """Return where the archive for this Java command and version of Kafka belongs; it need not be there."""
    installed = java.resolve()
    key = zlib.crc32(f"{installed} {installed.stat().st_mtime_ns}".encode())
    return local / archive_name(version, f"{key:08x}")


def archive_name(version: str, java: str) -> str:
    """Return the name of an archive's file for a version of Kafka; ``java`` stands for the Java command."""
    return f"classes-{version}-{java}.jsa"


def options(archive: Path) -> tuple[str, ...]:
    """Java's options to use an archive, if it is there; one that does not fit (other jars) is passed over in silence."""
    if not archive.is_file():  # told of a missing one, Java would not even use the archive of its own classes
        return ()
    return (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr")

"""Finds the Java that Kafka 4.2 and Spark 4.1 both run on: version 17 or 21, a JRE is enough.

Needs nothing but the standard library, because ``make install`` asks it before anything is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from airmirror.errors import AirmirrorError

OLDEST, NEWEST = 17, 21
MACOS_JAVA_HOME = "/usr/libexec/java_home"
PLACES = (
    ("/usr/lib/jvm", "*/bin/java"),
    ("/opt/homebrew/opt", "openjdk@*/bin/java"),
    ("/usr/local/opt", "openjdk@*/bin/java"),
)


class JavaNotFound(AirmirrorError):
    """No Java of a version that serves; ``found`` lists the ones that were looked at, as ``path (version)``."""

    found: tuple[str, ...]

    def __str__(self) -> str:
        seen = ", ".join(self.found) or "none"
        return (
            "Java 17 or 21 is needed (a JRE is enough); found: "
            f"{seen}. Install one (Debian, Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install openjdk@21; "
            "others: https://adoptium.net) or set JAVA_HOME to one that is installed already."
        )


def find_java() -> Path:
    """The ``java`` command to use: JAVA_HOME's, the PATH's, or one in the places where systems keep them."""
    found: list[str] = []
    for java in _candidates():
        version = _version(java)
        if version is not None and OLDEST <= version <= NEWEST:
            return java
        found.append(f"{java} ({'does not run' if version is None else version})")
    raise JavaNotFound(tuple(found))


def java_home() -> Path:
    """The directory for JAVA_HOME, which Spark's scripts read."""
    return find_java().resolve().parent.parent


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    # macOS has a /usr/bin/java that only tells that no Java is installed; _version sees that it fails.
    if on_path := shutil.which("java"):
        yield Path(on_path)
    if os.access(MACOS_JAVA_HOME, os.X_OK):
        for version in (NEWEST, OLDEST):
            answer = subprocess.run(
                [MACOS_JAVA_HOME, "-F", "-v", str(version)], capture_output=True, text=True, check=False
            )
            if answer.returncode == 0:
                yield Path(answer.stdout.strip(), "bin", "java")
    for directory, pattern in PLACES:
        yield from sorted(Path(directory).glob(pattern))


def _version(java: Path) -> int | None:
    """The major version a ``java`` command reports, None when it does not run."""
    try:
        answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(version.group(1)) if answer.returncode == 0 and version else None


if __name__ == "__main__":
    try:
        print(find_java())
    except JavaNotFound as error:
        sys.exit(str(error))

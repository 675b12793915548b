"""Kafka's jars, resolved once from Maven Central with the Ivy jar that PySpark ships, into ``.local/kafka-<version>``.

``python -m airmirror_local.jars`` does it ahead of time. ``KAFKA_VERSION`` may name another version than 4.2.0, for tests.
``IVY_SETTINGS`` may name an Ivy settings file, for a mirror of Maven Central; without it Ivy's defaults hold. Ivy's cache
stays inside the checkout too. Of the versions for which ``kafka-<version>.sha256`` lies beside this file, every jar must be
the one whose checksum that names.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import tempfile
from pathlib import Path

from airmirror.errors import AirmirrorError
from airmirror.local import LOCAL
from airmirror_local.java import find_java

KAFKA_VERSION = os.environ.get("KAFKA_VERSION", "4.2.0")
MODULES = Path(__file__).with_name("kafka.ivy.xml")


class JarsNotResolved(AirmirrorError):
    """Ivy could not download Kafka; ``output`` is the end of what it said."""

    version: str
    output: str
    says = (
        "Kafka {0.version} could not be resolved:\n{0.output}\nCheck the connection to Maven Central (behind a proxy: "
        "JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=…; for a mirror: IVY_SETTINGS=<ivysettings.xml>) and try again."
    )


class JarsDiffer(AirmirrorError):
    """What Ivy has downloaded is not what was released; ``jars``: those that differ, lack, or are too many."""

    version: str
    jars: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"Kafka {self.version} was downloaded, and is not used: {len(self.jars)} jars are not those whose checksums "
            f"{_checksums(self.version).name} has ({', '.join(self.jars[:5])}).\n"
            "Remove .local/ivy and try again; if it stays so, ask who runs the mirror of Maven Central."
        )


def resolve(local: Path = LOCAL, version: str = KAFKA_VERSION, modules: Path = MODULES) -> Path:
    """The directory of the jars (Kafka's: about 95 files, 55 MB); downloads them when it is not there.

    ``modules``: the Ivy file ``<name>.ivy.xml`` that names them, given ``<name>.version``. Raises JarsNotResolved, JarsDiffer.
    """
    name = modules.name.removesuffix(".ivy.xml")
    jars = local / f"{name}-{version}"
    if jars.is_dir():
        return jars
    local.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=local, prefix="resolving-") as scratch:
        retrieved = Path(scratch, "jars")
        command = [str(find_java()), f"-D{name}.version={version}", "-jar", str(_ivy(version))]
        command += ["-cache", str(local / "ivy"), "-ivy", str(modules)]
        if settings := os.environ.get("IVY_SETTINGS"):
            command += ["-settings", settings]
        command += ["-retrieve", f"{retrieved}/[artifact]-[revision].[ext]"]
        ivy = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if ivy.returncode != 0 or not retrieved.is_dir():
            raise JarsNotResolved(version, "\n".join(ivy.stdout.splitlines()[-30:]))
        if modules == MODULES:
            check(retrieved, version)
        try:
            retrieved.rename(jars)  # in one step, so a directory that is there is complete
        except OSError:
            if not jars.is_dir():  # else another process was quicker
                raise
    return jars


def check(jars: Path, version: str = KAFKA_VERSION) -> None:
    """Compare every jar with its checksum, where the version has any. Raises JarsDiffer."""
    if not (file := _checksums(version)).is_file():
        return
    expected = {name: digest for digest, name in map(str.split, file.read_text().splitlines())}
    found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in jars.iterdir()}
    if differing := sorted(name for name in expected | found if expected.get(name) != found.get(name)):
        raise JarsDiffer(version, tuple(differing))


def _checksums(version: str) -> Path:
    return MODULES.with_name(f"kafka-{version}.sha256")


def classpath(local: Path = LOCAL, version: str = KAFKA_VERSION) -> str:
    """Return the class path with which ``java -cp`` runs Kafka's classes."""
    return f"{resolve(local, version)}/*"


def _ivy(version: str) -> Path:
    """The Ivy jar inside the PySpark package, found without importing PySpark."""
    pyspark = importlib.util.find_spec("pyspark")
    if pyspark is None or not pyspark.submodule_search_locations:
        raise JarsNotResolved(version, "PySpark, whose Ivy jar downloads Kafka, is not installed: run make install.")
    return next(Path(pyspark.submodule_search_locations[0], "jars").glob("ivy-*.jar"))


if __name__ == "__main__":
    print(resolve())

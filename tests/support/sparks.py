"""Sparks of other versions: each a PySpark package, which is a whole Spark, and the Python that its executors run."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from support import ROOT
from support.installed import HERE, environment, needed

ELSEWHERE = "3.13" if HERE == "3.12" else "3.12"


@dataclass(frozen=True)
class OtherSpark:
    """A Spark and its Python. ``client``: the version of PySpark that joins it."""

    spark: str
    python: str
    client: str

    def __str__(self) -> str:
        return f"{self.spark}-{self.python}-{self.client}"

    @property
    def of_client(self) -> Path:
        """The Python that has the client: this one where it is ours."""
        if self.client == version("pyspark"):
            return Path(sys.executable)
        return installed(replace(self, spark=self.client))


OTHERS = [
    *(OtherSpark(spark, HERE, version("pyspark")) for spark in ("4.0.2", "4.1.1", "4.2.0", "4.3.0")),
    OtherSpark("4.0.2", HERE, "4.0.2"),
    # A client that is newer than the server, as Airflow 3.3 brings it.
    *(OtherSpark(spark, HERE, "4.2.0") for spark in ("4.0.2", "4.1.1")),
    *(OtherSpark("4.2.0", python, "4.2.0") for python in ("3.11", "3.12", "3.13") if python != HERE),
]


def installed(other: OtherSpark) -> Path:
    """The Python of an environment with that Spark and all that executors and commands need."""
    limits = (ROOT / "requirements-executor.txt").read_text().splitlines()
    packages = [f"pyspark[connect]=={other.spark}", *needed("cli")]
    return environment(f"spark-{other.spark}-{other.python}", other.python, packages, limits)


def spark_home(python: Path) -> Path:
    """The whole Spark that is installed for a Python."""
    (found,) = python.parents[1].glob("lib/python*/site-packages/pyspark")
    return found

"""DAGs, the gate and the client beside other versions of Airflow, in other Pythons, with the oldest and newest packages."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

import pytest

from support import ROOT
from support.installed import describe, environment, needed
from support.resolution import WHOLE_SPARK, kept

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

TOOLS = ("hypothesis", "pytest>=9", "pytest-timeout", "pytest-xdist", "setuptools>=77")
WARNING = "ignore:PySpark does not yet fully support pandas:FutureWarning"  # Great Expectations imports both
# Of those of Airflow what needs none that runs: what it parses, serializes and lists, and what tasks and questions make of it.
OF_AIRFLOW = (
    "parsing",
    "forms",
    "retries",
    "provider",
    "deployment",
    "notifications",
    "pausing",
    "approvals",
    "window_tasks",
)
TESTS = (
    *(f"on_airflow/test_{name}.py" for name in OF_AIRFLOW),
    "quality",
    "client/test_client.py",
    "clusters/test_admin.py",
)


@dataclass(frozen=True)
class OtherAirflow:
    """An Airflow, its Python, and the versions of two packages of which pyproject.toml allows many."""

    airflow: str
    python: str
    confluent_kafka: str
    pandas: str

    def __str__(self) -> str:
        return "-".join((self.airflow, self.python, self.confluent_kafka, self.pandas))

    @property
    def limits(self) -> list[str]:
        own = [f"apache-airflow=={self.airflow}", f"confluent-kafka=={self.confluent_kafka}", f"pandas=={self.pandas}"]
        return [*kept(self.airflow), *own, *([WHOLE_SPARK[self.airflow]] if self.airflow in WHOLE_SPARK else [])]


OTHERS = [
    OtherAirflow("3.2.1", "3.12", "2.14.0", "2.3.3"),  # under its constraints
    OtherAirflow("3.2.2", "3.11", "2.6.0", "2.2.2"),  # the oldest two that are allowed
    OtherAirflow("3.3.1", "3.12", "2.15.0", "3.0.5"),  # under its constraints
    OtherAirflow("3.3.2", "3.13", "2.16.1", "3.1.1"),  # the newest
]


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_dags_the_gate_and_the_client_beside_another_airflow(other: OtherAirflow) -> None:
    python = environment(f"airflow-{other}", other.python, [*needed("all"), *TOOLS], other.limits)
    describe(python)
    tests = (ROOT / "tests" / each for each in TESTS)
    answer = subprocess.run(
        [python, "-m", "pytest", "-q", "-x", "-m", "not long", "-p", "no:cacheprovider", "-W", WARNING, *tests],
        cwd=ROOT,
        env=os.environ
        | {"PYTHONPATH": str(ROOT / "include"), "_AIRFLOW__AS_LIBRARY": ""},  # a command that ran here sets it
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout[-5000:]

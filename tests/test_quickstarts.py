"""The quickstarts for managed Airflow, as far as they go without the services: their files make the DAGs that they name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from airmirror.config import load
from support import ROOT

PAGE = (ROOT / "docs" / "managed-airflow.md").read_text()
FILE = re.compile(r"`([^`\n]+)`:\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Of each part of the page: where the service has its files, and the file that sets the variables.
SERVICES = {
    "Amazon MWAA": ("/usr/local/airflow", "startup.sh"),
    "Google Cloud Composer": ("/home/airflow/gcs", "environment"),
    "Astro": ("/usr/local/airflow", ".env"),
}
DAGS = """
import os, sys
from airflow.dag_processing.dagbag import DagBag
from airmirror.on_airflow.deployment import deployment
bag = DagBag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
assert not bag.import_errors, bag.import_errors
print(*sorted(bag.dags), sep="\\n")
print("ledger", deployment().ledger.partition(":")[0])
"""


def part(title: str) -> str:
    (text,) = re.findall(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return text


def files_of(service: str) -> dict[str, str]:
    """What each of the services gets, and what this one does."""
    return dict(FILE.findall(part("On each of them") + part(service)))


def test_the_page_names_the_last_release() -> None:
    newest, *_ = re.findall(r"^## \[([\d.]+)\] - \d", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    named = re.findall(r"\bairmirror(?:\[[\w,]+\]==|-)([\d.]+\d)\b", PAGE)
    assert len(named) == len(SERVICES) and set(named) == {newest}


@pytest.mark.parametrize("service", SERVICES)
def test_what_a_page_configures_is_sound(service: str, tmp_path: Path) -> None:
    files = files_of(service)
    (properties,) = (text for name, text in files.items() if name.endswith("mirror.properties"))
    (tmp_path / "mirror.properties").write_text(properties)
    found = load(tmp_path / "mirror.properties")
    assert [flow.name for flow in found.enabled] == ["east->west"] and found.notes == ()
    asked = re.findall(r"airmirror-[\w.]+-py3-none-any\.whl(\[[\w,]+\])", "\n".join(files.values()))
    asked += re.findall(r'"airmirror(\[[\w,]+\])', part(service))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert asked and all(Requirement(f"airmirror{each}").extras <= extras.keys() for each in asked)


@pytest.mark.seconds
@pytest.mark.parametrize(  # above are the files of each; what Airflow makes of them does not differ
    "service", [pytest.param(name, marks=[pytest.mark.long] if number else []) for number, name in enumerate(SERVICES)]
)
def test_airflow_makes_the_dags_of_a_page_where_the_service_lays_its_files(service: str, tmp_path: Path) -> None:
    files, (home, variables) = files_of(service), SERVICES[service]
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text.replace(home, str(tmp_path)))
    script = f'set -a; . "{tmp_path / variables}"; exec "$0" -c "$1"'
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AIRMIRROR", "AIRFLOW"))}
    environment |= {"AIRFLOW_HOME": str(tmp_path / "airflow"), "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags")}
    done = subprocess.run(
        ["bash", "-c", script, sys.executable, DAGS], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *_, ledger = lines = done.stdout.splitlines()
    assert "replicate.east.west" in lines and "operate.east.west" in lines
    assert ledger == "ledger postgresql+psycopg2"

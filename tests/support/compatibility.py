"""What works with what, as tests have found it: ``make docs TRY=yes`` runs them and keeps here what passed and what failed.

``PYTHONPATH=tests .venv/bin/python -m support.compatibility FILE…`` takes in JUnit files of pytest, run by this Python, and
writes ``tried.tsv`` beside this module; ``make docs`` writes the tables of docs/compatibility.md from it.
"""

from __future__ import annotations

import csv
import platform
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

from packaging.version import Version

from airmirror_local.jars import KAFKA_VERSION
from support import ROOT
from support.services import SERVICES, Service

FILE = Path(__file__).with_name("tried.tsv")
PAGE = ROOT / "docs" / "compatibility.md"
PASSED, FAILED = "✓", "✗"
MANAGED = "Managed"  # whose columns are services, and which is shown by them
_TABLE = re.compile(r"(<!-- tried: (\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Tried:
    """One cell: what was tried, on which version, how it ended and when."""

    table: str
    row: str
    column: str
    outcome: str
    day: str


@dataclass(frozen=True)
class Shown:
    """What a test shows: its row, and the versions that it ran on, from the parameters in the test's name."""

    table: str
    row: Callable[[str], str]
    column: Callable[[str], str]


def _of_brokers(what: str) -> Shown:
    return Shown("Kafka", lambda _: what, lambda version: version or KAFKA_VERSION)


def _of_this_airflow(what: str) -> Shown:
    python = ".".join(platform.python_version_tuple()[:2])
    return Shown("Airflow", lambda _: f"Python {python}: {what}", lambda _: version("apache-airflow"))


def _of_this_spark(what: str) -> Shown:
    return Shown("Spark", lambda _: what, lambda _: version("pyspark"))


_EVERYWHERE = "every kind of log, and a worker that is killed in mid-window: by every way in which slots run"


def _of_another_spark(case: str) -> str:
    spark, python, client = case.split("-")
    joins = "a client of that version" if client == spark else f"a client of {client}"
    return f"a worker is killed in mid-window, and `compare`: connect, Python {python}, {joins}"


def _beside_another_airflow(case: str) -> str:
    _, python, confluent_kafka, pandas = case.split("-")
    return f"Python {python}, confluent-kafka {confluent_kafka}, pandas {pandas}: DAGs, the gate and the client do their work"


def _of_its_page(what: str) -> Shown:
    return Shown(MANAGED, lambda _: what, lambda service: service)


SHOWN = {
    "test_a_window_on_an_old_kafka": _of_brokers("a window, whose slot is killed in its transaction"),
    "test_tls_on_an_old_kafka": _of_brokers("TLS, the client with a certificate"),
    "test_a_take_over_on_an_old_kafka": _of_brokers("a take-over, three times there and back, of made copies"),
    "test_groups_on_an_old_kafka": _of_brokers("a group that fails over and back, and reads each record once"),
    "test_its_own_mirrormaker_2_on_an_old_kafka": _of_brokers(
        "MirrorMaker 2 of that version, dedicated, under load: killed, taken over, handed back, and again"
    ),
    "test_the_fence_on_an_old_kafka": _of_brokers("lease and fence: another window is refused, a stale slot fenced"),
    "test_a_source_topic_created_again_in_mid_window_on_an_old_kafka": _of_brokers(
        "a source topic that is created again in mid-window"
    ),
    "test_the_faults_on_an_older_kafka": Shown(
        "Kafka", lambda name: f"the [faults](faults.md) of `test_{name}.py`", lambda _: "3.9.1"
    ),
    "test_it_installs_beside_every_airflow_that_it_runs_on": Shown(
        "Airflow",
        lambda case: "Python {1}: `airmirror[{2}]` installs".format(*case.split("-")),
        lambda case: case.split("-")[0],
    ),
    "test_what_a_page_configures_is_sound": _of_its_page(
        "the files of [its page](managed-airflow.md) configure a flow"
    ),
    "test_airflow_makes_the_dags_of_a_page_where_the_service_lays_its_files": _of_its_page(
        "the files of [its page](managed-airflow.md), laid where the service has them: Airflow makes their DAGs"
    ),
    "test_dags_parse_equally_and_load_nothing_heavy": _of_this_airflow("DAG files are parsed"),
    "test_dags_the_gate_and_the_client_beside_another_airflow": Shown(
        "Airflow", _beside_another_airflow, lambda case: case.split("-")[0]
    ),
    "test_every_kind_of_log_in_two_windows": _of_this_spark(_EVERYWHERE),
    "test_a_worker_is_killed_in_mid_window": _of_this_spark(_EVERYWHERE),
    "test_a_kill_and_a_comparison_on_another_spark": Shown("Spark", _of_another_spark, lambda case: case.split("-")[0]),
}
"""The tests whose outcome the page shows, by their names."""


def outcomes(junit: Path, day: str) -> Iterator[Tried]:
    """Yield what a run of pytest has tried; a test that was skipped has tried nothing."""
    for case in ElementTree.parse(junit).iter("testcase"):
        name, _, ids = case.get("name", "").removesuffix("]").partition("[")
        if name in SHOWN and case.find("skipped") is None:
            shown = SHOWN[name]
            failed = case.find("failure") is not None or case.find("error") is not None
            yield Tried(shown.table, shown.row(ids), shown.column(ids), FAILED if failed else PASSED, day)


def merged(known: list[Tried], new: list[Tried]) -> list[Tried]:
    """Return all that was tried, the newest of each; of what was tried twice in one run, the failure."""
    cells = {(each.table, each.row, each.column): each for each in known}
    for each in sorted(new, key=lambda each: each.outcome == FAILED):
        cells[each.table, each.row, each.column] = each
    return [cells[key] for key in sorted(cells)]


def kept() -> list[Tried]:
    """Read what was kept."""
    with FILE.open(newline="") as file:
        return [Tried(*line) for line in csv.reader(file, delimiter="\t")]


def keep(tried: list[Tried]) -> None:
    """Write what is to be kept."""
    with FILE.open("w", newline="") as file:
        lines = ((each.table, each.row, each.column, each.outcome, each.day) for each in tried)
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(lines)


def page() -> str:
    """The text of docs/compatibility.md, with its tables made of what was tried."""
    tried = kept()

    def made(found: re.Match[str]) -> str:
        what = services(tried) if found[2] == MANAGED else table([each for each in tried if each.table == found[2]])
        return found[1] + what

    return _TABLE.sub(made, PAGE.read_text())


def table(tried: list[Tried]) -> str:
    """A row for each thing that was tried, a column for each version; empty: not tried."""
    if not tried:
        return "Nothing was tried yet.\n"
    columns = sorted({each.column for each in tried}, key=Version)
    cells = {(each.row, each.column): each.outcome for each in tried}
    rows = list(dict.fromkeys(each.row for each in tried))
    lines = [["", *columns], ["---"] * (len(columns) + 1)]
    lines += [[row, *(cells.get((row, column), "") for column in columns)] for row in rows]
    last = max(each.day for each in tried)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + f"\nLast run of any of these: {last}.\n"


def services(tried: list[Tried]) -> str:
    """A line for each thing that was tried for a service, and for each that was not tried on it or can not be."""
    lines = [["service", "what", ""], ["---"] * 3]
    for service in SERVICES:
        of_its_page = [each for each in tried if (each.table, each.column) == (MANAGED, service.name)]
        lines += [[service.name, each.row, each.outcome] for each in of_its_page]
        lines += [
            [service.name, f"Airflow {each.column}, {each.row}", each.outcome] for each in _forced(service, tried)
        ]
        lines += [[service.name, *known] for known in service.known]
    last = max((each.day for each in tried if each.table == MANAGED), default="never")
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + f"\nLast run of those of a page: {last}.\n"


def _forced(service: Service, tried: list[Tried]) -> Iterator[Tried]:
    """Yield what was tried under the constraints that a service forces."""
    for airflow, python in service.forced:
        for each in tried:
            is_there = each.row.startswith(f"Python {python}") and "[all]" not in each.row
            if is_there and (each.table, each.column) == ("Airflow", airflow):
                yield each


if __name__ == "__main__":
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    keep(merged(kept(), [each for file in sys.argv[1:] for each in outcomes(Path(file), today)]))

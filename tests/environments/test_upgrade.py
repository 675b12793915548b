"""The last release and this code on one flow, as in an upgrade of one driver after the other, and in one that is taken back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import javaproperties
import pytest
import sqlalchemy as sql
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tenacity import Retrying, retry_if_result, stop_after_delay

from airmirror_local.brokers import Broker
from airmirror_local.processes import Process, start_process
from airmirror_local.proxy import Hold, Proxy
from airmirror_local.spark_connect import TOKEN, ConnectServer
from chaos.producers import Writer, Written
from environments.test_scenarios import ledger_of
from support import ROOT
from support.databases import new_database
from support.flows import Mirror, mirror
from support.hostile import numbered
from support.releases import install, last_release
from support.topics import produce

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

PRODUCE = 0
TRY_AGAIN = 75
BUSY_SECONDS = 180.0  # after which another window has no right to a lease that it does not renew
PARTITIONS = 3
# The versions of two drivers: one is upgraded after the other, and then they go back.
ORDER = (("old", "old"), ("new", "old"), ("new", "new"), ("old", "new"), ("old", "old"))


@dataclass(frozen=True)
class Version:
    """One version of Airmirror: ``place`` is where its packages lie. All have the same flow, ledger and Spark."""

    name: str
    place: Path
    directory: Path
    variables: Mapping[str, str]

    def of(self, ledger: str) -> Version:
        """The same with another ledger."""
        return replace(self, variables={**self.variables, "AIRMIRROR_LEDGER": ledger})

    @contextmanager
    def started(self, *words: str) -> Iterator[Process]:
        """A command's process, which is ended with the context."""
        log = self.directory / f"{self.name}-{uuid.uuid4().hex[:8]}.log"
        command = [sys.executable, "-m", "airmirror.cli.main", *words]
        process = start_process(" ".join(words), command, log, environment=self.variables, directory=self.directory)
        try:
            yield process
        finally:
            process.stop()

    def asked(self, *words: str, status: int = 0) -> str:
        """What a command says, which must end with that exit status."""
        with self.started(*words) as process:
            found = process.handle.wait()
        said = process.log.read_text()
        assert found == status, (self.name, words, found, said)
        return said

    def window(self) -> int:
        """Run a window, which must verify everything, as soon as no other one has the lease; returns what it has copied."""
        once_more = Retrying(
            retry=retry_if_result(lambda answer: answer[0] == TRY_AGAIN),
            stop=stop_after_delay(BUSY_SECONDS),
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
        )

        def run() -> tuple[int, str]:
            with self.started("run-window", "--json") as process:
                return process.handle.wait(), process.log.read_text()

        status, said = once_more(run)
        assert status == 0, (self.name, said)
        return int(json.loads(said[said.index("{") :])["records"])


Versions = dict[str, Version]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the last release is installed."""
    return install(last_release(), tmp_path_factory.mktemp("release"))


@dataclass(frozen=True)
class Deployment:
    """A flow of both versions, and what is produced to its topic."""

    flow: Mirror
    versions: Versions

    @property
    def partitions(self) -> list[tuple[str, int]]:
        return [(self.flow.topic, number) for number in range(PARTITIONS)]

    def write(self, kind: str) -> Writer:
        return Writer(Written(f"{kind}-{uuid.uuid4().hex[:8]}", kind), self.flow.source, self.partitions, kind)  # type: ignore[arg-type]


BOTH_LEDGERS = pytest.mark.parametrize("deployment", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def deployment(
    release: Path,
    east: Broker,
    west: Broker,
    west_proxy: Proxy,
    connect_server: ConnectServer,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Deployment:
    settings = {"window.commit.bytes": "20000", "tasks.max": "2"}
    flow = mirror(east, west, tmp_path, partitions=PARTITIONS, settings=settings, through=west_proxy.bootstrap)
    config = tmp_path / "mirror.properties"
    lines = {line.key: line.value for line in flow.opened.configuration.settings}
    config.write_text(javaproperties.dumps(lines, timestamp=None))
    shared = {
        "AIRMIRROR_CONFIG": str(config),
        "AIRMIRROR_LEDGER": ledger_of(getattr(request, "param", "sqlite"), tmp_path, request),
        "AIRMIRROR_SPARK": connect_server.address,
        TOKEN: connect_server.token,
    }
    places = {"old": release, "new": ROOT / "include"}
    return Deployment(
        flow,
        {name: Version(name, place, tmp_path, shared | {"PYTHONPATH": str(place)}) for name, place in places.items()},
    )


@BOTH_LEDGERS
def test_drivers_are_upgraded_one_after_the_other_while_windows_run_and_go_back(deployment: Deployment) -> None:
    versions = deployment.versions
    for version in versions.values():
        where = [sys.executable, "-c", "import airmirror; print(airmirror.__file__)"]
        found = subprocess.run(
            where, env=os.environ | dict(version.variables), capture_output=True, text=True, check=True
        )
        assert Path(found.stdout.strip()).is_relative_to(version.place)
    writers = [deployment.write("idempotent"), deployment.write("transactional")]
    copied = dict.fromkeys(versions, 0)
    try:
        for drivers in ORDER:
            with ThreadPoolExecutor(len(drivers)) as pool:
                for name, count in zip(drivers, pool.map(lambda name: versions[name].window(), drivers), strict=True):
                    copied[name] += count
    finally:
        for writer in writers:
            writer.stop()
    for name, version in versions.items():
        copied[name] += version.window()
        version.asked("verify")
        version.asked("status")
    assert deployment.flow.assert_equal() == sum(copied.values()) and all(copied.values())


@pytest.mark.parametrize(("stale", "next_"), [("old", "new"), ("new", "old")])
def test_a_window_that_slept_is_fenced_by_one_of_the_other_version(
    deployment: Deployment, west_proxy: Proxy, stale: str, next_: str
) -> None:
    flow = deployment.flow
    produce(flow.source, flow.topic, numbered(3000, size=200), records_per_batch=50)
    hold = Hold(PRODUCE, number=west_proxy.requests[PRODUCE] + 10)
    west_proxy.on_request = hold
    with deployment.versions[stale].started("run-window") as process:
        try:
            while not hold.reached.wait(0.2):
                assert process.running, process.log.read_text()
            process.pause()
            deployment.versions[next_].window()
        finally:
            hold.release.set()
        process.resume()
        assert process.handle.wait() != 0, process.log.read_text()
    assert flow.assert_equal() == 3000
    deployment.versions[stale].asked("verify")


def test_what_people_decide_and_are_given_with_one_version_counts_in_the_other(
    deployment: Deployment, tmp_path: Path
) -> None:
    flow, versions = deployment.flow, deployment.versions
    why, key = ("--reason", "an upgrade", "--yes"), tmp_path / "key.pem"
    key.write_bytes(Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    versions["old"].window()
    for turn, (first, second) in enumerate((("old", "new"), ("new", "old")), 1):
        here, there = versions[first], versions[second]
        here.asked("hold", "add", flow.topic, *why)
        produce(flow.source, flow.topic, numbered(30, start=100 * turn))
        assert there.window() == 0
        there.asked("hold", "release", flow.topic, *why)
        assert here.window() == 30
        here.asked("flow", "freeze", *why)
        assert "frozen" in there.asked("run-window", status=1)
        there.asked("flow", "unfreeze", *why)
        assert here.window() == 0 and flow.assert_equal() == 30 * turn
        report = tmp_path / f"report-{turn}"
        here.asked("report", "--write", str(report), "--key", str(key))
        there.asked("report", "check", f"{report}.json", "--config", here.variables["AIRMIRROR_CONFIG"])


def shape(url: str) -> dict[str, object]:
    """The schema of a ledger, as its database describes it."""
    engine = sql.create_engine(url)
    try:
        inspector = sql.inspect(engine)
        looks: tuple[Callable[[str], object], ...] = (
            lambda table: [each | {"type": str(each["type"])} for each in inspector.get_columns(table)],
            inspector.get_pk_constraint,
            inspector.get_indexes,
            inspector.get_unique_constraints,
            inspector.get_foreign_keys,
            inspector.get_check_constraints,
        )
        return {table: [look(table) for look in looks] for table in sorted(inspector.get_table_names())}
    finally:
        engine.dispose()


@BOTH_LEDGERS
def test_each_version_reads_the_ledger_that_the_other_one_has_made(
    deployment: Deployment, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    flow, versions, shapes = deployment.flow, deployment.versions, {}
    produce(flow.source, flow.topic, numbered(30))
    for name, other in (("old", "new"), ("new", "old")):
        url = versions[name].variables["AIRMIRROR_LEDGER"]
        own = (
            f"sqlite:///{tmp_path / name}.db"
            if url.startswith("sqlite")
            else new_database(url, f"{name}_{uuid.uuid4().hex[:8]}")
        )
        versions[name].of(own).asked("ledger", "rebuild")
        versions[name].of(own).window()
        versions[other].of(own).window()
        versions[other].of(own).asked("status")
        shapes[name] = shape(own)
    assert shapes["old"] == shapes["new"] != {}

"""The fixtures of every test: two clusters and a Spark Connect server for the whole run, and names of its own."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest
import typer.testing
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from airmirror.clusters.admin import shared
from airmirror.local import LOCAL
from airmirror_local.brokers import Broker
from airmirror_local.proxy import Proxy, start_proxy
from airmirror_local.spark_connect import QUICK_START, ConnectServer, start_connect_server
from support.servers import KEPT, PASSWORD, pgserver
from support.sides import PAUSED, Sides, own_sides

# How long a draw or an example takes is the machine's load, and no fault of what is tested.
settings.register_profile("thorough", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # of make test-all
settings.register_profile("usual", settings.get_profile("thorough"), max_examples=25)
# Of make test QUICK=yes.
settings.register_profile("quick", settings.get_profile("thorough"), max_examples=10, database=None)
settings.load_profile("usual")

CLUSTERS = pytest.StashKey[dict[str, Sides]]()  # the process's clusters that run, by fixture
USERS = pytest.StashKey[dict[str, set[str]]]()  # the tests that run together of which one uses them
END_SECONDS = 30  # how long a process that a test has started may take to end after it

# pytest keeps the modules whose asserts it has rewritten, whatever the environment says: that is half the time of collecting.
sys.dont_write_bytecode = False
# Compiled loops stay in the checkout (airmirror.native).
os.environ.setdefault("XDG_CACHE_HOME", str(LOCAL / "cache"))
os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_START)
# A CliRunner makes all commands anew, of all signatures, for each that it invokes: that took 3 % of all tests.
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]


# Folders and files whose tests share servers that are dear: they run in one process. Those with the most work come first.
TOGETHER = {
    "airflow and spark": (
        "on_airflow/",
        "on_spark/",
        "windows/test_security.py",
        "airmirror_local/test_spark_connect.py",
    ),
    "apart": (
        "failback/",
        "on_airflow/test_heartbeat_trigger.py",  # what needs no Airflow
        "cli/test_failback.py",
        "cli/test_heartbeat.py",
        "chaos/test_procedures.py",
        "runbooks/test_meetings.py",
        "pairs/test_cells.py",
        "client/test_client.py",
        "offsets/test_heartbeats.py",
        "offsets/test_latency.py",
    ),
    "guarded": ("migration/",),
    "three nodes": ("windows/nodes/",),
    "three clusters": ("topologies/",),
    "browser": ("web/",),
    "postgresql": ("ledger/",),
}

# A test whose cases are given to processes one by one: each computes for a minute, and starts nothing.
ONE_BY_ONE = "model/test_procedures.py::test_every_state_of_the_deep_meetings"

# Tests that use one of these fixtures, or whose module starts servers of its own, are left out by `make test QUICK=yes`.
SERVERS = {"airflow", "apart", "guarded", "postgresql", "sides", "stack_directory", "three"}
STARTERS = {
    "airflow_stack",
    "run_demo",
    "running_stack",
    "start_airflow",
    "start_broker",
    "start_cluster",
    "start_clusters",
    "start_connect_server",
    "start_secured",
    "start_spark_cluster",
    "start_stack",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="a test that is skipped makes the run fail")


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Collect without looking for garbage, which was a third of it: all that is made then lasts to the end."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()
    gc.enable()
    session.config.stash[CLUSTERS] = {}
    session.config.stash[USERS] = {
        name: {_group(each.nodeid) for each in session.items if name in getattr(each, "fixturenames", ())}
        for name in ("brokers", "apart")
    }


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that need servers: by the fixtures that each uses, directly or not, and by what its module starts.

    Those that run together come first, of them those with an Airflow last (it is busy while it has nothing to do); then the
    rest of those that need servers.
    """
    order: dict[Path, int] = {}
    for item in items:
        group = _group(item.nodeid)
        order.setdefault(item.path, list(TOGETHER).index(group) if group in TOGETHER else len(TOGETHER) + 1)
        if isinstance(item, pytest.Function) and (
            SERVERS.intersection(item.fixturenames)
            or STARTERS.intersection(vars(item.module))
            or "on_airflow" in item.path.parts
        ):
            item.add_marker("servers")
            order[item.path] = min(order[item.path], len(TOGETHER))
    items.sort(key=lambda item: (order[item.path], "airflow" in getattr(item, "fixturenames", ())))


class ByServers(LoadScopeScheduling):
    """Give each process of ``pytest -n`` the tests that run together, else those of a file at a time."""

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByServers:
    return ByServers(config, log)


def _group(nodeid: str) -> str:
    """The group of the longest place that the test lies in, else its file; a case of ONE_BY_ONE is its own."""
    case = nodeid.removeprefix("tests/")
    if case.startswith(ONE_BY_ONE):
        return case
    file = case.partition("::")[0]
    found = [(len(place), name) for name, places in TOGETHER.items() for place in places if file.startswith(place)]
    return max(found, default=(0, file))[1]


@pytest.hookimpl(trylast=True)  # after the durations
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say why tests were skipped: a line for each reason, which names the command that installs what is missing."""
    skipped = terminalreporter.getreports("skipped")
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    if reasons:
        terminalreporter.section("skipped")
    for reason, count in sorted(reasons.items()):
        terminalreporter.line(f"{count} skipped: {reason}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With ``--no-skips``, fail where a test was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("--no-skips") and reporter is not None and reporter.getreports("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def stack_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the session's brokers and server keep their files; emptied at the end."""
    directory = tmp_path_factory.mktemp("stack")
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def brokers(stack_directory: Path, pytestconfig: pytest.Config) -> Iterator[Sides]:
    """Clusters ``east`` and ``west``, which all tests of the process share: use topics of your own, leave them running."""
    with own_sides(stack_directory, PAUSED) as own:
        pytestconfig.stash[CLUSTERS]["brokers"] = own
        yield own


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Delete the topics of tests that run together, once all of them have: every look at a cluster is dearer for each of them.

    Clusters that no test needs until then are paused: a broker that has nothing to do is busy all the same.
    """
    before = _group(item.nodeid)
    if nextitem is None or before == (group := _group(nextitem.nodeid)):
        return
    for name, sides in item.config.stash[CLUSTERS].items():
        users = item.config.stash[USERS][name]
        if name == "brokers" and before in users:
            sides.empty()
        for broker in (sides.east, sides.west):
            (broker.resume if group in users else broker.pause)()


@pytest.fixture(scope="session")
def east(brokers: Sides) -> Broker:
    return brokers.east


@pytest.fixture(scope="session")
def west(brokers: Sides) -> Broker:
    return brokers.west


@pytest.fixture(scope="session")
def apart(stack_directory: Path, pytestconfig: pytest.Config) -> Iterator[Sides]:
    """Clusters ``east`` and ``west`` of this process's own, for what flows of others would see: heartbeats, a reverse flow."""
    with own_sides(stack_directory / "apart") as own:
        pytestconfig.stash[CLUSTERS]["apart"] = own
        yield own


@pytest.fixture
def sides(apart: Sides) -> Iterator[Sides]:
    """The same; every test begins and ends with no topics on them. Flows there and back have one alias for each of them."""
    apart.empty()
    yield apart
    apart.empty()


@pytest.fixture
def east_proxy(east: Broker) -> Iterator[Proxy]:
    """A proxy before ``east``, whose bootstrap address leads all of a client's connections through it."""
    with _proxy_alone(east) as proxy:
        yield proxy


@pytest.fixture
def west_proxy(west: Broker) -> Iterator[Proxy]:
    """A proxy before ``west``, whose bootstrap address leads all of a client's connections through it."""
    with _proxy_alone(west) as proxy:
        yield proxy


@contextmanager
def _proxy_alone(broker: Broker) -> Iterator[Proxy]:
    """A proxy that no client of an earlier test connects to again: what happens there would happen to it too, and librdkafka
    ends the process at some altered answers."""
    with shared._lock:
        shared._clients.clear()
    with start_proxy(broker) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def connect_server(stack_directory: Path) -> Iterator[ConnectServer]:
    """A Spark Connect server, which all tests share."""
    server = start_connect_server(stack_directory / "spark")
    try:
        yield server
    finally:
        server.process.kill()  # nothing of it is asked any more, and its own end takes seconds


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a running PostgreSQL (from the wheel ``pgserver``), for SQLAlchemy.

    Its files are not below pytest's own directory: every pytest that starts closes that one to other users, and
    PostgreSQL, which root can't run, is one.
    """
    directory = Path(tempfile.mkdtemp(prefix="airmirror-postgresql-"))
    server = pgserver().get_server(directory, cleanup_mode="delete")
    postmaster = psutil.Process(server.get_pid())
    try:
        yield server.get_uri().replace("postgresql://postgres:@", f"postgresql+psycopg2://postgres:{PASSWORD}@", 1)
    finally:
        ended, log = not _command(postmaster), (directory / "log").read_text(errors="replace")
        server.cleanup_mode = None if ended else "delete"  # it can't stop what is gone
        server.cleanup()
        shutil.rmtree(directory, ignore_errors=True)
        if ended:
            pytest.fail(f"PostgreSQL ended before the tests did (killed, if its log does not say why): {log[-3000:]}")


@pytest.fixture
def topic() -> Callable[[str], str]:
    """Names for topics that no other test uses: ``topic("orders")``."""
    return lambda name: f"{name}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    """A test that leaves a process running fails, and the process is ended so that the next test starts clean."""
    before = _pids_of_children()
    yield
    _, left = psutil.wait_procs(_begun(_pids_of_children() - before), timeout=END_SECONDS)
    if left:
        commands = [" ".join(_command(process)) for process in left]
        for process in left:
            process.kill()
        psutil.wait_procs(left, timeout=END_SECONDS)
        pytest.fail("left running: " + "; ".join(commands))


def _begun(pids: set[int]) -> list[psutil.Process]:
    """Those of the processes that run, save the helpers that multiprocessing keeps for the whole run, and servers of it."""
    begun = list[psutil.Process]()
    for pid in pids - KEPT:
        with suppress(psutil.NoSuchProcess):
            begun.append(psutil.Process(pid))
    return [each for each in begun if not any("multiprocessing" in argument for argument in _command(each))]


def _pids_of_children() -> set[int]:
    """As ``psutil.Process().children()``, which reads about every process of the machine: twice a test, that adds up."""
    pids, before = _listed(), None
    while pids != before:  # while a child ends, the kernel may leave out others (proc_pid_children(5))
        pids, before = _listed(), pids
    return {child.pid for child in psutil.Process().children()} if pids is None else pids


def _listed() -> set[int] | None:
    """The children of all our threads; None on another system, or with a kernel without CONFIG_PROC_CHILDREN."""
    pids, is_known, threads = set[int](), False, "/proc/self/task"
    for thread in os.listdir(threads) if os.path.isdir(threads) else ():
        with suppress(OSError), open(f"{threads}/{thread}/children", "rb") as file:  # unless the thread has ended
            pids.update(map(int, file.read().split()))
            is_known = True
    return pids if is_known else None


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []

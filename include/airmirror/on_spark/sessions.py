"""Spark sessions for windows: one re-joined Spark Connect session a flow, or Spark in this process.

Every new Connect session leaves a Python daemon behind on the server, so a flow has one that is never stopped: its id is
made of the deployment's secret, the flow, the library's digest and a generation, which goes up when the server has closed
or forgotten it. The secret, so that no other user can join or prepare a session: ``AIRMIRROR_SPARK_SECRET`` in the environment
of every process of the deployment; without it one of the user on this machine.
"""

from __future__ import annotations

import atexit
import contextlib
import hmac
import os
import re
import secrets
import shutil
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from airmirror.config import Cluster, Flow
from airmirror.errors import AirmirrorError
from airmirror.on_spark.library import build, digest
from airmirror.private import private_directory
from airmirror.windows.demand import Capacity, at_most

try:
    from py4j.protocol import Py4JError
except ImportError:  # a client of Spark Connect alone
    SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException,)
else:  # of a driver in this process: what PySpark knows no exception for
    SPARK_ERRORS = (PySparkException, Py4JError)

_INVALID = "INVALID_CONNECT_URL"  # said with the parameters, and so the token
_REFUSED = (_INVALID, "UNAUTHENTICATED", "PERMISSION_DENIED")
LOCAL_MASTER = "local[*,4]"  # plain local[*] never retries a task
MOST_GENERATIONS = 1000
NO_LIMIT = 2**31 - 1  # of executors: Spark's own default
_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"  # where it is set, PySpark's functions are Spark Connect's
_SUBMITTED = "PYSPARK_GATEWAY_PORT"  # spark-submit runs a Python driver with it
# A gRPC server allows a ping each 5 minutes: a channel to one that stands still breaks then, and its calls fail.
KEEPALIVE = ("grpc.keepalive_time_ms", 310_000)
# Where the session has changed, the client closes itself and then can't ask for the details: no active session.
CLOSED = ("SESSION_CLOSED", "SESSION_NOT_FOUND", "SESSION_CHANGED", "NO_ACTIVE_SESSION")


class SparkUnavailable(AirmirrorError, transient=True):
    """A Spark Connect server that does not answer."""

    says = "Spark at {0.url} can't be used: {0.reason}; is the Spark Connect server up?"
    url: str
    reason: str


class SparkRefused(AirmirrorError):
    """A Spark Connect server that does not let us in, or a URL that PySpark does not take."""

    says = (
        "Spark at {0.url} does not let us in: {0.reason}; see the token of the Spark connection (its password in "
        "Airflow, SPARK_CONNECT_AUTHENTICATE_TOKEN at the command line), and whether it wants TLS (use_ssl)"
    )
    url: str
    reason: str


class SpeculationRefused(AirmirrorError):
    """Spark would start a slot twice."""

    says = (
        "spark.speculation is on: two attempts of a slot would fence each other without end; "
        "set spark.speculation=false for the sessions of Airmirror"
    )


def connect(url: str, flow: Flow | ComparedClusters) -> SparkSession:
    """The flow's session on a Spark Connect server (``sc://host:port``, or with parameters), with the library in it.

    Raises SparkUnavailable, SparkRefused.
    """
    library = digest()
    for generation in range(MOST_GENERATIONS):
        spark: SparkSession | None = None
        try:
            spark = _joined(in_session(url, session_id(flow, library, generation)))
            _give_up_in_time(spark)
            # The first answer names the server: from then on the client refuses one that was started again, which would run
            # slots without the library, or with whatever is installed there. Adding the library alone does not notice.
            _check(spark)
            _add_library(spark, library)
            spark.conf.set("spark.scheduler.pool", flow.name)  # with FAIR scheduling, flows share the cores equally
        except PySparkException as error:
            if spark is not None:
                close(spark)  # else PySpark would ask this one, as the process's active session, for settings
            if any(word in str(error) for word in CLOSED):
                continue
            kind = SparkRefused if any(word in str(error) for word in _REFUSED) else SparkUnavailable
            raise kind(shown(url), _INVALID if _INVALID in str(error) else first_line(str(error))) from error
        return spark
    raise SparkUnavailable(shown(url), f"{MOST_GENERATIONS} sessions of flow {flow.name!r} were closed")


def shown(url: str) -> str:
    """The URL without its parameters, which hold the token."""
    return url.partition("/;")[0]


def _joined(url: str) -> SparkSession:
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    os.environ[_CONNECT_MODE] = "1"
    channel = DefaultChannelBuilder(url, channelOptions=[KEEPALIVE])
    return cast(SparkSession, ConnectSession.builder.channelBuilder(channel).create())


def in_session(url: str, session: UUID) -> str:
    """The URL with a session's id among its parameters. A slash in one (Airflow leaves it in tokens) would begin a path."""
    server, _, parameters = url.partition("/;")
    given = [*filter(None, parameters.split(";")), f"session_id={session}"]
    return f"{server.rstrip('/')}/;{';'.join(given).replace('/', '%2F')}"


def in_process() -> SparkSession:
    """Spark with its driver in this process: as spark-submit says, or else on all cores of this machine."""
    os.environ.pop(_CONNECT_MODE, None)  # whoever has used Spark Connect before has it, and what they start
    builder: Any = SparkSession.builder  # a class property, which type checkers do not see through
    if _SUBMITTED not in os.environ:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = (
            builder.master(LOCAL_MASTER)
            .appName("airmirror")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
        )
    spark: SparkSession = builder.getOrCreate()
    _check(spark)
    if not (spark.sparkContext.master or "").startswith("local"):
        directory = tempfile.mkdtemp(prefix="airmirror-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)  # executors fetch it as they start
        _send(spark, build(digest(), directory))
    return spark


def _send(spark: SparkSession, library: Path) -> None:
    """Give executors the library, unless spark-submit has sent it along: Spark refuses a second file of a name."""
    if library.name not in {Path(each).name for each in spark.sparkContext.listFiles}:
        spark.sparkContext.addPyFile(str(library))


def capacity(spark: SparkSession) -> Capacity:
    """Return how many tasks Spark runs at once: what its configuration says, else what has registered. With dynamic allocation of
    executors both: what has registered, and what the configuration allows at the most."""

    def number(key: str, default: int = 0) -> int:
        return int(spark.conf.get(key, "") or default)

    if (spark.conf.get("spark.master", "") or "").startswith("local"):
        return at_most(_registered(spark))
    grows = spark.conf.get("spark.dynamicAllocation.enabled", "false") == "true"
    executors = (
        number("spark.dynamicAllocation.maxExecutors", NO_LIMIT) if grows else number("spark.executor.instances")
    )
    limits = (number("spark.cores.max"), max(1, number("spark.executor.cores")) * executors)
    most = min(filter(None, limits), default=0)
    if most and not grows:
        return at_most(most)
    now = _registered(spark)
    return Capacity(now, max(now, most))


def _registered(spark: SparkSession) -> int:
    """Return the cores of the executors that are there (2, before there are any). No function of a Connect session tells; a plan
    does: a range without a number of partitions is given as many."""
    [row] = spark.sql("EXPLAIN SELECT * FROM range(1)").collect()
    found = re.search(r"splits=(\d+)", row[0])
    return int(found[1]) if found else 1


def close(spark: SparkSession) -> None:
    """Leave a Connect session without ending it; stop a session of this process."""
    session: Any = spark
    if "connect" in type(spark).__module__:
        session.client.close()  # the channel only: the session stays, to be joined again
    else:
        session.stop()


def _add_library(spark: SparkSession, library: str) -> None:
    with tempfile.TemporaryDirectory(prefix="airmirror-") as directory:
        try:
            spark.addArtifacts(str(build(library, directory)), pyfile=True)
        except PySparkException as error:
            if "ARTIFACT_ALREADY_EXISTS" not in str(error):  # the session was joined again
                raise


def _give_up_in_time(spark: SparkSession) -> None:
    """A server that is away for longer than 45 s has lost the job; by default the client would ask for it for ten minutes."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session: Any = spark
    policy = DefaultPolicy(max_retries=8, max_backoff=10_000)
    policy.max_server_retry_delay = 30_000  # no argument in Spark 4.0, which does not ask the server
    session.client.set_retry_policies([policy])


def _check(spark: SparkSession) -> None:
    if spark.conf.get("spark.speculation", "false") == "true":
        raise SpeculationRefused()


def first_line(said: str) -> str:
    """The first line of what an error says; of gRPC's own errors what the server has said."""
    found = re.search(r'details = "(.*)"', said)
    return found[1] if found else said.strip().partition("\n")[0]


SECRET_VARIABLE = "AIRMIRROR_SPARK_SECRET"
SECRET_FILE = "spark.secret"


@dataclass(frozen=True)
class ComparedClusters:
    """The clusters that a session compares; it has a name, as a flow's."""

    source: Cluster
    target: Cluster
    name: str = "compare"


def session_id(flow: Flow | ComparedClusters, library: str, generation: int) -> UUID:
    """The id of the flow's session: another flow, deployment, cluster, library or generation has another one."""
    parts = (flow.name, *flow.source.bootstrap_servers, "", *flow.target.bootstrap_servers, library, str(generation))
    digest = hmac.digest(_secret(os.environ.get(SECRET_VARIABLE, "")), "\0".join(parts).encode(), "sha256")
    return UUID(bytes=digest[:16], version=4)


@cache
def _secret(given: str) -> bytes:
    directory = private_directory()
    if given or directory is None:
        return given.encode() or secrets.token_bytes(32)
    file, draft = directory / SECRET_FILE, directory / f"{SECRET_FILE}.{os.getpid()}"
    if not file.exists():
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(secrets.token_bytes(32))
        with contextlib.suppress(FileExistsError):  # another process was quicker: its secret counts
            os.link(draft, file)
        draft.unlink()
    return file.read_bytes()

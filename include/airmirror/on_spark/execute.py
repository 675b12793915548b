"""Running the slots of a window as tasks of one Spark job."""

from __future__ import annotations

import os
import pickle
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Literal
from uuid import uuid4

from pyspark.sql import SparkSession

from airmirror.clusters.security.settings import self_contained
from airmirror.config import Cluster, Flow, Settings
from airmirror.errors import AirmirrorError
from airmirror.on_spark.library import ALTERED, checker, digest
from airmirror.on_spark.results import BadAnswer, decode
from airmirror.on_spark.sessions import CLOSED, SPARK_ERRORS, SparkUnavailable, close, connect, first_line, shown
from airmirror.on_spark.tasks import ANSWER_SCHEMA, TASKS, MissingPackage
from airmirror.slot.attempts import GRACE_SECONDS
from airmirror.slot.contract import Slot, SlotResult, transaction_timeout_ms
from airmirror.threads import begin

ATTEMPTS = 4  # of a task, as Spark has it by default
AGAIN_SECONDS = 5.0  # between two interruptions of a job that is late
INTERRUPT_SECONDS = 30.0  # for whoever ends a window: its slots are fenced after it
START_SECONDS = 300.0  # a cluster's: executors, and the library on them
Work = Callable[[Iterable[Any]], Iterator[Any]]  # a function of tasks, for mapInArrow
CHECKED = "spark.airmirror.python"  # of a session: the driver's Python whose functions its executors have run
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH\] Python in worker has different version: (\d+\.\d+)")
_NO_PYARROW = re.compile(r"No module named 'pyarrow\b|\[PACKAGE_NOT_INSTALLED\] PyArrow")
_CALLED = re.compile(r"An error occurred while calling \S+\s*:\s*")  # Py4J's own first line
_PYTHON_ERROR = re.compile(r"(?!org\.|java\.)[\w.]+(Error|Exception): .")


class LibraryAltered(AirmirrorError):
    """A session whose library is not the one that was put there."""

    says = (
        "flow {0.flow!r}: Spark's executors hold another Airmirror than this one: someone else has prepared the "
        "session, or one is installed there; nothing of it was run. See who reaches the Spark Connect server, set "
        "AIRMIRROR_SPARK_SECRET to a new value (docs/security.md), and keep Airmirror out of the executors' Python"
    )
    flow: str


class OtherPython(AirmirrorError):
    """Executors whose Python is of another minor version than the driver's: Spark runs no function there."""

    says = (
        "Spark's executors run Python {0.executors}, and Airmirror runs in Python {0.driver}: Spark runs no function "
        "of another minor version. Name a Python {0.driver} that has requirements-executor.txt: "
        "PYSPARK_PYTHON=… in the environment of `start-connect-server.sh`, or `spark-submit --conf spark.pyspark.python=…`; "
        "or run Airmirror in Python {0.executors}"
    )
    executors: str
    driver: str


class ExecutorsNotReady(AirmirrorError, transient=True):
    """Spark has not run the first task of a session; the window has not begun."""

    says = (
        "flow {0.flow!r}: Spark has not run a first, empty task: {0.reason}; the window has not begun. See on Spark's "
        "page whether it has executors, and whether other applications hold their cores"
    )
    flow: str
    reason: str


class SparkJobFailed(AirmirrorError, transient=True):
    """A Spark job that did not end well; what its slots committed counts, the next window continues from there."""

    says = "flow {0.flow!r}: the Spark job of window {0.window!r} failed: {0.reason}"
    flow: str
    window: str
    reason: str


def tag(flow: str) -> str:
    """The tag of a flow's jobs, by which those that an earlier window left are interrupted."""
    return f"airmirror {flow}"


def own_tag(flow: str) -> str:
    """The tag of those that this process has begun: of another run's window, which holds the lease, it has none."""
    return f"{tag(flow)} {socket.gethostname()}:{os.getpid()}"


def interrupt(url: str, flow: Flow) -> None:
    """Interrupt the flow's jobs of this process on a Spark Connect server. Raises SparkUnavailable, also of one that hangs."""

    def work() -> None:
        spark = connect(url, flow)
        try:
            spark.interruptTag(own_tag(flow.name))
        finally:
            close(spark)

    try:
        begin(work).result(INTERRUPT_SECONDS)
    except TimeoutError as error:
        raise SparkUnavailable(shown(url), f"it has not answered for {INTERRUPT_SECONDS:.0f} s") from error


def check_executors(spark: SparkSession, flow: str) -> None:
    """See by one empty task that executors run what this Python sends; where the session has seen it before, no task is needed.

    Raises OtherPython, MissingPackage, ExecutorsNotReady.
    """
    own, is_late = _own_python(), threading.Event()
    try:
        if spark.conf.get(CHECKED, "") == own:
            return
        with _limited(spark, flow, START_SECONDS, is_late):
            spark.range(0, 1, 1, 1).mapInArrow(_unchanged(), "id long").collect()
        spark.conf.set(CHECKED, own)
    except SPARK_ERRORS as error:
        said = str(error) or type(error).__name__
        why = f"it has not begun within {START_SECONDS:.0f} s" if is_late.is_set() else reason(said)
        raise not_begun(flow, said) or ExecutorsNotReady(flow, why) from error


def _unchanged() -> Work:
    """A function inside a function: it is sent as code, and needs nothing of the library."""

    def unchanged(batches: Iterable[Any]) -> Iterator[Any]:
        yield from batches

    return unchanged


def execute(spark: SparkSession, slots: Sequence[Slot], owner: str = "") -> list[SlotResult]:
    """Run every slot in a task of its own; jobs of the flow that an earlier window left are interrupted first.

    ``owner``: the flow by whose name the jobs are known, where it is not the slots' own. A slot whose task dies is tried
    again by Spark and continues from the committed progress (invariant C). The clusters' settings, what is secret among
    them, are part of the function that tasks run: Spark keeps it in memory, and neither logs nor shows it. Truststores and
    keystores travel as what they hold.
    Raises SparkJobFailed, LibraryAltered, OtherPython, MissingPackage, UnsupportedClientSetting.
    """
    flow, window = owner or slots[0].flow.name, slots[0].window
    whole = slots[0].flow
    bare = replace(whole, source=_bare(whole.source), target=_bare(whole.target), settings=Settings.of({}))
    whole = replace(whole, source=self_contained(whole.source), target=self_contained(whole.target))
    asked = {partition.key for slot in slots for partition in slot.partitions}
    limit, is_late = most_seconds(slots[0]), threading.Event()
    try:
        spark.interruptTag(tag(flow))
        with _limited(spark, flow, limit, is_late, tag(flow)):
            answers = run_tasks(spark, [replace(slot, flow=bare) for slot in slots], in_tasks(pickle.dumps(whole)))
        return [result for answer in answers for result in decode(answer, asked)]
    except SPARK_ERRORS as error:
        if is_late.is_set():
            raise SparkJobFailed(flow, window, f"it was not done after {limit:.0f} s, and was interrupted") from error
        said = str(error) or type(error).__name__
        raise not_begun(flow, said) or SparkJobFailed(flow, window, reason(said)) from error
    except BadAnswer as error:
        raise SparkJobFailed(flow, window, f"the answer of a slot can't be used: {error}") from error


@contextmanager
def _limited(spark: SparkSession, flow: str, seconds: float, is_late: threading.Event, *more: str) -> Iterator[None]:
    """Interrupt what this thread runs where it lasts for longer; its jobs have ``more`` tags than those of this process."""
    # An interruption may still be on its way when its job has ended: by a tag of this execution alone it meets no later one.
    is_over, own = threading.Event(), f"{tag(flow)} {uuid4().hex}"
    tags = (*more, own_tag(flow), own)

    def end_when_late() -> None:
        if is_over.wait(seconds):
            return
        is_late.set()  # first: the job may fail before Spark's answer to the interruption is here
        # Spark interrupts only what has begun: a job that it begins later is met by the next interruption.
        while not is_over.is_set():
            with suppress(*SPARK_ERRORS):  # whoever waits for the job gets the server's error
                spark.interruptTag(own)
            is_over.wait(AGAIN_SECONDS)

    for name in tags:
        spark.addTag(name)
    threading.Thread(target=end_when_late, name="late", daemon=True).start()
    try:
        yield
    finally:
        is_over.set()
        for name in tags:
            spark.removeTag(name)


def run_tasks(spark: SparkSession, specs: Sequence[object], work: Work) -> list[bytes]:
    """The answer of a task for each of ``specs``, which are pickled into rows. Raises PySparkException, BadAnswer."""
    count, given = len(specs), [bytearray(pickle.dumps(spec)) for spec in specs]
    # Of a range of as many partitions each has one number. A client of Spark 4.1 can't send a server of 4.0 rows
    # (createDataFrame), and that can't partition them by their number (repartitionById).
    tasks = spark.sql(TASKS.format(count=count), args=[given])
    answers = {row.task: bytes(row.answer) for row in tasks.mapInArrow(work, ANSWER_SCHEMA).collect()}
    if answers.keys() != set(range(count)):
        raise BadAnswer(f"{len(answers)} answers of {count} tasks")
    return [answers[number] for number in range(count)]


def most_seconds(slot: Slot) -> float:
    """After so long a job has no task left that could end by itself: every attempt ends soon after the window's time."""
    attempt = slot.longest_ms / 1000 + GRACE_SECONDS + 2 * transaction_timeout_ms(slot.flow) / 1000
    return ATTEMPTS * attempt + START_SECONDS


def in_tasks(given: bytes, task: Literal["run_slots", "run_parts"] = "run_slots") -> Work:
    """The function of tasks, for ``mapInArrow``: ``task``, of the module of tasks, with what is ``given`` to each of them.

    It is sent as code: it checks the library before anything of it runs.
    """
    check = checker(digest())

    def checked(batches: Iterable[Any]) -> Iterator[Any]:
        check()
        from airmirror.on_spark import tasks

        run: Callable[[Iterable[Any], bytes], Iterator[Any]] = getattr(tasks, task)
        return run(batches, given)

    return checked


def not_begun(flow: str, said: str) -> AirmirrorError | None:
    """The error for which no task could begin: another library, another Python, or none of Spark's packages; else None."""
    if other := _OTHER_PYTHON.search(said):
        return OtherPython(other[1], _own_python())
    if ALTERED in said:
        return LibraryAltered(flow)
    if _NO_PYARROW.search(said):  # without it no task begins that could say so itself
        return MissingPackage("pyarrow")
    return None


def reason(said: str) -> str:
    """Return the useful part of Spark's long error: its first line, and the last error of a Python worker."""
    said = _CALLED.sub("", said).strip()
    found = " ".join([first_line(said), *[line for line in said.splitlines()[1:] if _PYTHON_ERROR.match(line)][-1:]])
    if any(word in said for word in CLOSED):
        return f"the Spark Connect server was restarted, or has ended the session ({found})"
    return found


def _own_python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _bare(cluster: Cluster) -> Cluster:
    """Without settings, as rows have it: Spark writes them to disk when it spreads them."""
    return Cluster(cluster.alias, cluster.bootstrap_servers, {})

"""Running the slots of a window as tasks of one Spark job."""

from __future__ import annotations

import pickle
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from airmirror.clusters.security.settings import self_contained
from airmirror.config import Cluster, Flow, Settings
from airmirror.errors import AirmirrorError
from airmirror.on_spark.library import ALTERED, checker, digest
from airmirror.on_spark.results import BadAnswer, decode
from airmirror.on_spark.sessions import CLOSED, close, connect
from airmirror.on_spark.tasks import ANSWER_SCHEMA, TASK_SCHEMA, MissingPackage
from airmirror.slot.attempts import GRACE_SECONDS
from airmirror.slot.contract import Slot, SlotResult, transaction_timeout_ms

ATTEMPTS = 4  # of a task, as Spark has it by default
AGAIN_SECONDS = 5.0  # between two interruptions of a job that is late
START_SECONDS = 300.0  # a cluster's: executors, and the library on them
Work = Callable[[Iterable[Any]], Iterator[Any]]  # a function of tasks, for mapInArrow
_NO_PYARROW = re.compile(r"No module named 'pyarrow\b|\[PACKAGE_NOT_INSTALLED\] PyArrow")
_PYTHON_ERROR = re.compile(r"(?!org\.|java\.)[\w.]+(Error|Exception): .")


class LibraryAltered(AirmirrorError):
    """A session whose library is not the one that was put there."""

    flow: str

    def __str__(self) -> str:
        return (
            f"flow {self.flow!r}: Spark's executors hold another Airmirror than this one: someone else has prepared the "
            "session, or one is installed there; nothing of it was run. See who reaches the Spark Connect server, set "
            "AIRMIRROR_SPARK_SECRET to a new value (docs/security.md), and keep Airmirror out of the executors' Python"
        )


class SparkJobFailed(AirmirrorError, transient=True):
    """A Spark job that did not end well; what its slots committed counts, the next window continues from there."""

    flow: str
    window: str
    reason: str

    def __str__(self) -> str:
        return f"flow {self.flow!r}: the Spark job of window {self.window!r} failed: {self.reason}"


def tag(flow: str) -> str:
    """The tag of a flow's jobs, by which they can be interrupted."""
    return f"airmirror {flow}"


def interrupt(url: str, flow: Flow) -> None:
    """Interrupt the flow's jobs on a Spark Connect server, from any process. Raises SparkUnavailable."""
    spark = connect(url, flow)
    try:
        spark.interruptTag(tag(flow.name))
    finally:
        close(spark)


def execute(spark: SparkSession, slots: Sequence[Slot], owner: str = "") -> list[SlotResult]:
    """Run every slot in a task of its own; jobs of the flow that an earlier window left are interrupted first.

    ``owner``: the flow by whose name the jobs are known, where it is not the slots' own. A slot whose task dies is tried
    again by Spark and continues from the committed progress (invariant C). The clusters' settings, what is secret among
    them, are part of the function that tasks run: Spark keeps it in memory, and neither logs nor shows it. Truststores and
    keystores travel as what they hold.
    Raises SparkJobFailed, LibraryAltered, MissingPackage, UnsupportedClientSetting.
    """
    flow, window = owner or slots[0].flow.name, slots[0].window
    whole = slots[0].flow
    bare = replace(whole, source=_bare(whole.source), target=_bare(whole.target), settings=Settings.of({}))
    whole = replace(whole, source=self_contained(whole.source), target=self_contained(whole.target))
    asked = {partition.source for slot in slots for partition in slot.partitions}
    limit = most_seconds(slots[0])
    is_late, is_over = threading.Event(), threading.Event()

    def end_when_late() -> None:
        if is_over.wait(limit):
            return
        is_late.set()  # first: the job may fail before Spark's answer to the interruption is here
        # Spark interrupts only what has begun: a job that it begins later is met by the next interruption.
        while not is_over.is_set():
            with suppress(PySparkException):  # whoever waits for the job gets the server's error
                spark.interruptTag(tag(flow))
            is_over.wait(AGAIN_SECONDS)

    try:
        spark.interruptTag(tag(flow))
        spark.addTag(tag(flow))
        threading.Thread(target=end_when_late, name="late", daemon=True).start()
        answers = run_tasks(spark, [replace(slot, flow=bare) for slot in slots], in_tasks(pickle.dumps(whole)))
        return [result for answer in answers for result in decode(answer, asked)]
    except PySparkException as error:
        if is_late.is_set():
            raise SparkJobFailed(flow, window, f"it was not done after {limit:.0f} s, and was interrupted") from error
        raise _failure(flow, window, str(error) or type(error).__name__) from error
    except BadAnswer as error:
        raise SparkJobFailed(flow, window, f"the answer of a slot can't be used: {error}") from error
    finally:
        is_over.set()
        spark.removeTag(tag(flow))


def run_tasks(spark: SparkSession, specs: Sequence[object], work: Work) -> list[bytes]:
    """The answer of a task for each of ``specs``, which are pickled into rows. Raises PySparkException, BadAnswer."""
    given = [(number, bytearray(pickle.dumps(spec))) for number, spec in enumerate(specs)]
    frame = spark.createDataFrame(given, TASK_SCHEMA).repartitionById(len(given), "task")
    answers = {row.task: bytes(row.answer) for row in frame.mapInArrow(work, ANSWER_SCHEMA).collect()}
    if answers.keys() != set(range(len(given))):
        raise BadAnswer(f"{len(answers)} answers of {len(given)} tasks")
    return [answers[number] for number in range(len(given))]


def most_seconds(slot: Slot) -> float:
    """After so long a job has no task left that could end by itself: every attempt ends soon after the window's time."""
    attempt = slot.longest_ms / 1000 + GRACE_SECONDS + 2 * transaction_timeout_ms(slot.flow) / 1000
    return ATTEMPTS * attempt + START_SECONDS


def in_tasks(flow: bytes) -> Work:
    """The function of tasks, for ``mapInArrow``. It is sent as code: it checks the library before anything of it runs."""
    check = checker(digest())

    def checked(batches: Iterable[Any]) -> Iterator[Any]:
        check()
        from airmirror.on_spark.tasks import run_slots

        return run_slots(batches, flow)

    return checked


def _failure(flow: str, window: str, said: str) -> AirmirrorError:
    """The error that Spark's words come to."""
    return not_begun(flow, said) or SparkJobFailed(flow, window, reason(said))


def not_begun(flow: str, said: str) -> AirmirrorError | None:
    """The error for which no task could begin: another library, or none of Spark's packages; None: it is another one."""
    if ALTERED in said:
        return LibraryAltered(flow)
    if _NO_PYARROW.search(said):  # without it no task begins that could say so itself
        return MissingPackage("pyarrow")
    return None


def reason(said: str) -> str:
    """Return the useful part of Spark's long error: its first line, and the last error of a Python worker."""
    first, *rest = said.strip().splitlines() or [""]
    found = " ".join([first, *[line for line in rest if _PYTHON_ERROR.match(line)][-1:]])
    if any(word in said for word in CLOSED):
        return f"the Spark Connect server was restarted, or has ended the session ({found})"
    return found


def _bare(cluster: Cluster) -> Cluster:
    """Without settings, as rows have it: Spark writes them to disk when it spreads them."""
    return Cluster(cluster.alias, cluster.bootstrap_servers, {})

"""A Spark job that does not end is interrupted."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from airmirror.config import parse
from airmirror.on_spark import execute
from airmirror.on_spark.sessions import SparkUnavailable
from airmirror.slot.contract import Slot


class Stuck:
    """In place of a session: the job waits for ever, that is until it is interrupted a second time."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error or PySparkException("interrupted")
        self.interrupted: list[str] = []
        self.twice = threading.Event()

    def interruptTag(self, tag: str) -> None:
        self.interrupted.append(tag)
        if len(self.interrupted) == 2:
            self.twice.set()

    def addTag(self, tag: str) -> None:
        pass

    removeTag = addTag

    def sql(self, *_arguments: Any, args: Any = None) -> Stuck:
        return self

    mapInArrow = sql

    def collect(self) -> None:
        assert self.twice.wait(60)
        raise self.error


ABORTED = "Job aborted due to stage failure: Task 0 failed 4 times"
OF_JAVA = Py4JError(f"An error occurred while calling o58.collectToPython.\n: {ABORTED}\n\tat org.apache.spark")


@pytest.mark.parametrize("error", [None, OF_JAVA])
def test_a_job_that_does_not_end_is_interrupted(error: Exception | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark in this process has errors that are none of PySpark's."""
    monkeypatch.setattr(execute, "most_seconds", lambda slot: 0.01)
    lines = "clusters = a, b\na.bootstrap.servers = x:1\nb.bootstrap.servers = y:1\na->b.enabled = true\n"
    flow = parse(lines, "test").flow("a->b")
    slot = Slot(
        flow=flow,
        window="w",
        number=0,
        lease_offset=0,
        max_ms=120_000,
        max_bytes=None,
        progress_topic="progress",
        progress_partitions=1,
        mapping_topic="mappings",
        partitions=(),
    )
    session = Stuck(error)
    with pytest.raises(execute.SparkJobFailed, match="was not done after") as caught:
        execute.execute(session, [slot])  # type: ignore[arg-type]
    of_the_flow, of_this_one = session.interrupted
    assert caught.value.transient and of_the_flow == execute.tag("a->b") and of_this_one != of_the_flow


def test_a_job_that_java_or_the_network_ends_says_why() -> None:
    assert execute.reason(str(OF_JAVA)) == ABORTED
    details = 'details = "failed to connect to all addresses"'
    said = f"<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n\t{details}\n>"
    assert execute.reason(said) == "failed to connect to all addresses"


def test_whoever_ends_a_window_waits_for_no_server_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "connect", lambda *_: threading.Event().wait())
    monkeypatch.setattr(execute, "INTERRUPT_SECONDS", 0.05)
    flow = parse("clusters = a, b\na.bootstrap.servers = x:1\nb.bootstrap.servers = y:1\na->b.enabled = true\n", "t")
    with pytest.raises(SparkUnavailable) as caught:
        execute.interrupt("sc://nowhere/;token=planted", flow.flow("a->b"))
    assert caught.value.transient and "planted" not in str(caught.value)


def test_a_process_interrupts_its_own_job_and_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that only waits for the lease is paused or killed while another run's window copies."""
    lines = "clusters = a, b\na.bootstrap.servers = x:1\nb.bootstrap.servers = y:1\na->b.enabled = true\n"
    flow, jobs = parse(lines, "test").flow("a->b"), dict[str, set[str]]()

    class Session(Stuck):
        def addTag(self, tag: str) -> None:
            jobs.setdefault(name, set()).add(tag)

    for name in ("another process", "this one"):
        with monkeypatch.context() as patched:
            if name == "another process":
                patched.setattr(execute.os, "getpid", lambda: 1)
            with execute._limited(Session(), flow.name, 60.0, threading.Event()):  # type: ignore[arg-type]
                pass
    session = Stuck()
    monkeypatch.setattr(execute, "connect", lambda *_: session)
    monkeypatch.setattr(execute, "close", lambda _: None)
    execute.interrupt("sc://nowhere", flow)
    assert [name for name, tags in jobs.items() if tags & set(session.interrupted)] == ["this one"]


def test_the_limit_is_longer_than_all_attempts_of_a_slot() -> None:
    flow = parse("clusters = a, b\na.bootstrap.servers = x:1\nb.bootstrap.servers = y:1\na->b.enabled = true\n", "t")
    slot = Slot(
        flow=flow.flow("a->b"),
        window="w",
        number=0,
        lease_offset=0,
        max_ms=120_000,
        max_bytes=None,
        progress_topic="progress",
        progress_partitions=1,
        mapping_topic="mappings",
        partitions=(),
    )
    assert execute.most_seconds(slot) > 4 * (120 + 15 + 60)

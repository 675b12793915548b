"""A real Spark Connect server with a token: who gets in, whose code runs, and a job that does not end."""

from __future__ import annotations

import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from airmirror.on_spark import execute as module
from airmirror.on_spark import library, sessions
from airmirror.on_spark.execute import LibraryAltered, SparkJobFailed, execute, interrupt, own_tag, tag
from airmirror.on_spark.sessions import SparkRefused, close, connect
from airmirror.slot.attempts import GRACE_SECONDS
from airmirror.slot.contract import Slot
from airmirror.threads import begin
from airmirror_local.ports import LOOPBACK
from airmirror_local.spark_connect import TOKEN, ConnectServer
from support.flows import a_flow

pytestmark = pytest.mark.timeout(600)  # tasks of a loaded machine
RAN = "a stranger's code ran"


NOBODY, NOBODY_ELSE = f"{LOOPBACK}:1", f"{LOOPBACK}:2"  # ports at which nothing listens


def a_slot(source: str, servers: str = NOBODY) -> Slot:
    """A slot without partitions whose time, and what a fault may take beyond it, is over: it tries its clusters once."""
    over = round(-1000 * GRACE_SECONDS)
    return Slot(
        flow=a_flow(source, servers),
        window="window",
        number=0,
        lease_offset=0,
        max_ms=over,
        follow_ms=over,
        max_bytes=None,
        progress_topic="progress",
        progress_partitions=1,
        mapping_topic="mappings",
        partitions=(),
    )


@pytest.fixture
def joined(connect_server: ConnectServer) -> Iterator[Callable[[Slot], SparkSession]]:
    found: list[SparkSession] = []

    def join(slot: Slot) -> SparkSession:
        found.append(connect(connect_server.url, slot.flow))
        return found[-1]

    yield join
    for each in found:
        close(each)


def test_who_shows_no_token_or_another_one_does_not_get_in(
    connect_server: ConnectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    for url in (connect_server.address, f"{connect_server.address}/;token=another"):
        with pytest.raises(SparkRefused) as caught:
            connect(url, a_flow("token"))
        assert "token=" not in str(caught.value) and "authentication token" in caught.value.reason
        assert not caught.value.transient
    monkeypatch.setenv(TOKEN, connect_server.token)  # as at the command line
    close(connect(connect_server.address, a_flow("token")))


def test_a_session_with_another_library_in_it_runs_nothing(
    connect_server: ConnectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who knows the session's id has put a changed zip of the expected name into it."""
    mark = tmp_path / "ran"
    build = library.build

    def altered(digest: str, directory: str) -> Path:
        whole, archive = build(digest, str(tmp_path)), Path(directory) / f"airmirror-{digest}.zip"
        with zipfile.ZipFile(whole) as given, zipfile.ZipFile(archive, "w") as out:
            for name in given.namelist():
                code = given.read(name)
                first = f"open({str(mark)!r}, 'w').write({RAN!r})\n".encode()
                out.writestr(name, first if name == "airmirror/__init__.py" else code)
        return archive

    slot = a_slot("hijacked")
    with monkeypatch.context() as before:
        before.setattr(sessions, "build", altered)
        close(connect(connect_server.url, slot.flow))
    spark = connect(connect_server.url, slot.flow)
    try:
        with pytest.raises(LibraryAltered) as caught:
            execute(spark, [slot])
        assert not caught.value.transient and not mark.exists()
    finally:
        close(spark)


def test_an_added_file_is_another_library(tmp_path: Path) -> None:
    """Compiled code beside a module would be imported in its place; what is not ours could be imported, too."""
    archive = library.build(library.digest(), str(tmp_path))
    digest_of = library.digester()
    assert digest_of(str(archive / "airmirror")) == library.digest()
    with zipfile.ZipFile(archive, "a") as out:
        out.writestr("numpy/__init__.py", "")
    assert digest_of(str(archive / "airmirror")) != library.digest()


def test_a_job_that_begins_after_its_time_is_interrupted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark interrupts what has begun: its first answer is that there is no such job.

    What is interrupted is this execution's alone: an answer that comes late would end the flow's next job.
    """
    spark, has_ended = Mock(), threading.Event()
    answers = iter([[], [], [], ["job"]])  # the first of all is for what an earlier window left
    asked: list[str] = []

    def interrupt_tag(name: str) -> list[str]:
        asked.append(name)
        found = next(answers, [])
        if found:
            has_ended.set()
        return found

    def run_tasks(*_: object) -> list[bytes]:
        assert has_ended.wait(30), "it was not interrupted"
        raise PySparkException("cancelled")

    spark.interruptTag = interrupt_tag
    monkeypatch.setattr(module, "run_tasks", run_tasks)
    monkeypatch.setattr(module, "most_seconds", lambda slot: 0.0)
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.01)
    with pytest.raises(SparkJobFailed, match="was interrupted"):
        execute(spark, [a_slot("late")])
    of_the_flow, *own = asked
    assert of_the_flow == tag("late->west") and of_the_flow not in own
    assert {name for call in spark.addTag.call_args_list for name in call.args} == {
        of_the_flow,
        own_tag("late->west"),
        *own,
    }


def test_a_server_that_is_gone_before_the_job_begins_fails_the_window_as_transient() -> None:
    spark, tags = Mock(), set[str]()
    spark.addTag, spark.removeTag = tags.add, tags.remove  # as the client has them: none is removed that was not added
    spark.interruptTag.side_effect = PySparkException("UNAVAILABLE")
    with pytest.raises(SparkJobFailed, match="UNAVAILABLE") as caught:
        execute(spark, [a_slot("gone")])
    assert caught.value.transient and not tags


def test_a_job_without_an_end_is_interrupted(
    joined: Callable[[Slot], SparkSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_end(settings: bytes) -> Callable[[Any], Iterator[Any]]:
        def waiting(batches: Any) -> Iterator[Any]:
            import threading

            threading.Event().wait()
            yield from batches

        return waiting

    slot = a_slot("endless")
    spark = joined(slot)
    monkeypatch.setattr(module, "most_seconds", lambda slot: 3.0)
    monkeypatch.setattr(module, "AGAIN_SECONDS", 1.0)
    monkeypatch.setattr(module, "in_tasks", without_end)
    with pytest.raises(SparkJobFailed, match="was interrupted") as caught:
        execute(spark, [slot])
    assert caught.value.transient
    monkeypatch.undo()
    assert execute(spark, [a_slot("endless")]) == []  # its place is free again


def test_a_deployment_interrupts_its_own_jobs_only(
    connect_server: ConnectServer,
    joined: Callable[[Slot], SparkSession],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two with a flow of one name on one server, between other clusters."""
    begun, may_end = tmp_path / "begun", tmp_path / "may-end"
    in_tasks = module.in_tasks

    def held(settings: bytes) -> Callable[[Any], Iterator[Any]]:
        run, first, last = in_tasks(settings), str(begun), str(may_end)

        def waiting(batches: Any) -> Iterator[Any]:
            import os
            import time

            open(first, "w").close()
            while not os.path.exists(last):
                time.sleep(0.05)
            yield from run(batches)

        return waiting

    production, staging = a_slot("shared"), a_slot("shared", NOBODY_ELSE)
    spark = joined(production)
    monkeypatch.setattr(module, "in_tasks", held)
    job = begin(lambda: execute(spark, [production]))
    until = time.monotonic() + 120
    while not begun.exists() and not job.done() and time.monotonic() < until:
        time.sleep(0.05)
    assert begun.exists()
    interrupt(connect_server.url, staging.flow)
    monkeypatch.setattr(module, "in_tasks", in_tasks)
    assert execute(joined(staging), [staging]) == []  # which interrupts what it has left
    may_end.touch()
    assert job.result(120) == []

"""Executors that can't run what this Python sends are named before the window, by one task a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from airmirror.config import parse
from airmirror.flows.prepare import Opened
from airmirror.ledger import Ledger
from airmirror.on_spark import sessions
from airmirror.on_spark.execute import CHECKED, ExecutorsNotReady, OtherPython, check_executors, tag
from airmirror.on_spark.windows import on_spark
from airmirror.windows.demand import Demand

MISMATCH = (
    "An exception was thrown from the Python worker.\npyspark.errors.exceptions.base.PySparkRuntimeError: "
    "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11, PySpark cannot run."
)
FLOW = """
clusters = a, b
a.bootstrap.servers = one:9092
b.bootstrap.servers = two:9092
a->b.enabled = true
a->b.tasks.max = 3
"""
BURST = Demand((1e9,) * 8)


class FakeSession:
    """In place of a session: every job fails with ``said``, if there is anything to say; ``conf`` is itself."""

    def __init__(self, said: str = "") -> None:
        self.said, self.jobs, self.kept, self.tags = said, 0, dict[str, str](), list[str]()
        self.conf = self

    def get(self, key: str, default: str) -> str:
        return self.kept.get(key, default)

    def set(self, key: str, value: str) -> None:
        self.kept[key] = value

    def range(self, *_: Any) -> FakeSession:
        return self

    mapInArrow = range

    def interruptTag(self, tag: str) -> None:
        self.tags.append(tag)

    addTag = removeTag = interruptTag

    def collect(self) -> None:
        self.jobs += 1
        if self.said:
            raise PySparkException(self.said)

    def stop(self) -> None:
        self.kept.clear()


def check(session: FakeSession) -> None:
    check_executors(session, "a->b")  # type: ignore[arg-type]


def test_a_session_is_asked_once() -> None:
    session = FakeSession()
    check(session)
    check(session)
    assert session.jobs == 1
    session.kept[CHECKED] = "3.9"  # another driver has joined it
    check(session)
    assert session.jobs == 2
    assert tag("a->b") not in session.tags, "the window that has the lease runs under it, and would be interrupted"


def test_another_python_is_final_and_the_session_is_asked_again() -> None:
    session = FakeSession(MISMATCH)
    for _ in range(2):
        with pytest.raises(OtherPython) as caught:
            check(session)
    assert session.jobs == 2 and not caught.value.transient and caught.value.executors == "3.9"
    assert "--conf spark.pyspark.python" in str(caught.value) and "PYSPARK_PYTHON=" in str(caught.value)


def test_what_else_fails_is_tried_again() -> None:
    with pytest.raises(ExecutorsNotReady, match="Cannot run program") as caught:
        check(FakeSession('Cannot run program "python3"'))
    assert caught.value.transient


def test_a_window_that_spark_can_not_run_asks_for_no_slots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window asks for their number before it takes its lease; also where ``tasks.max`` says it."""
    configuration = parse(FLOW, "test")
    flow = configuration.flow("a->b")
    opened = Opened(configuration, flow, Ledger(f"sqlite:///{tmp_path / 'ledger.db'}").flow(flow.name))
    monkeypatch.setattr(sessions, "in_process", lambda: FakeSession(MISMATCH))
    with on_spark(opened, None, lambda phase: None) as (slots, _), pytest.raises(OtherPython):
        slots(BURST)
    monkeypatch.setattr(sessions, "in_process", FakeSession)
    with on_spark(opened, None, lambda phase: None) as (slots, _):
        assert slots(BURST) == 3

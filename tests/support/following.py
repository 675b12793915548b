"""Windows that follow the log: what is done beside them, awaited, and how their time is ended by an event."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from airmirror.slot.contract import Slot, SlotResult
from airmirror.slot.follow import Following
from airmirror.slot.intake import Intake
from airmirror.windows.following import Follow
from airmirror.windows.judging import no_objection
from airmirror.windows.results import WindowResult
from support.flows import Mirror, at_once
from support.topics import Cluster, Record, end_offsets, read_all

FOLLOW = Follow(no_objection)
SETTINGS = {"window.follow.ms": "120000", "window.follow.commit.ms": "50", "verify.interval.ms": "100"}


def ended_by_event(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Whoever sets it ends the time for which slots follow."""
    step, is_up = Following.step, threading.Event()

    def look(self: Following, intakes: Sequence[Intake]) -> None:
        if is_up.is_set():
            self.until = 0.0
        step(self, intakes)

    monkeypatch.setattr(Following, "step", look)
    return is_up


def patiently(error: type[BaseException] = AssertionError) -> Retrying:
    return Retrying(
        retry=retry_if_exception_type(error), stop=stop_after_delay(100), wait=wait_fixed(0.05), reraise=True
    )


def numbered(count: int, start: int = 0) -> list[Record]:
    return [Record(b"v%d" % n, b"k%d" % (n % 50), ((b"n".decode(), b"%d" % n),)) for n in range(start, start + count)]


def await_copied(flow: Mirror, count: int, partition: int | None = None) -> None:
    """Wait until this number of records can be read from the target."""
    await_readable(flow.target, flow.remote_topic, count, partition)


def await_readable(cluster: Cluster, topic: str, count: int, partition: int | None = None) -> None:
    """Wait until this number of records can be read from a topic, or from one partition of it."""
    for attempt in patiently():
        with attempt:
            found = read_all(cluster, topic, settled=False)
            assert sum(len(found[key]) for key in found if partition in (None, key)) == count


def await_verified(flow: Mirror) -> None:
    """Wait until everything that was copied is verified."""
    for attempt in patiently():
        with attempt:
            passed = {key[1]: found.offset + 1 for key, found in flow.opened.ledger.verified().items()}
            ends = end_offsets(flow.source, flow.topic, "read_committed")
            assert passed == {key: end for key, end in ends.items() if end}


@contextmanager
def beside(work: Callable[[], None], is_up: threading.Event) -> Iterator[None]:
    """Do ``work`` in a thread meanwhile, and say then that the time is up."""

    def done() -> None:
        try:
            work()
        finally:
            is_up.set()

    with ThreadPoolExecutor(1) as pool:
        doing = pool.submit(done)
        yield
        doing.result()


def follow(
    flow: Mirror,
    work: Callable[[], None],
    is_up: threading.Event,
    *,
    slots: int = 1,
    by: Follow = FOLLOW,
    window: str | None = None,
    found: list[SlotResult] | None = None,
) -> WindowResult:
    """Run a window that follows as long as ``work`` takes; ``found``: is given the results of its slots."""

    def execute(given: Sequence[Slot]) -> list[SlotResult]:
        with beside(work, is_up):
            results = at_once(given)
        (found if found is not None else []).extend(results)
        return results

    return flow.run(execute, window, slots, by)

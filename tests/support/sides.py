"""Clusters ``east`` and ``west`` of a whole run: with xdist its controller starts them when the first process asks, for all.

They end with the controller, however it ends, and no process that has done its part takes them from the others.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener
from pathlib import Path
from threading import Thread
from typing import Any

from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from airmirror_local.ports import free_port
from airmirror_local.processes import attach
from support.topologies import delete_all_topics

ASK, END = "ask", "end"


@dataclass(frozen=True)
class Sides:
    """Two clusters of one node each."""

    east: Broker
    west: Broker

    def empty(self) -> None:
        """Delete all topics but Kafka's own."""
        for broker in (self.east, self.west):
            delete_all_topics(broker)


@dataclass(frozen=True)
class Lender:
    """Where the processes of a run ask for the clusters: an address and the key that it takes."""

    address: str
    key: bytes

    def ask(self) -> Sides:
        """The clusters, started by now. Raises ProcessFailed."""
        answer = self._send(ASK)
        if isinstance(answer, Exception):
            raise answer
        return Sides(*(_lent(*each) for each in answer))

    def end(self) -> None:
        """Ask for nothing more to be started or lent."""
        self._send(END)

    def _send(self, what: str) -> Any:
        with Client(self.address, authkey=self.key) as connection:
            connection.send(what)
            return connection.recv()


@contextmanager
def own_sides(directory: Path) -> Iterator[Sides]:
    """The clusters of a run of one process, their files in ``directory``; on exit they have ended."""
    started: list[Broker] = []
    try:
        yield Sides(*_start(directory, started))
    finally:
        _end(started)


@contextmanager
def lent_sides() -> Iterator[Lender]:
    """Clusters that are started when the first process asks for them; on exit they have ended, and their files are gone."""
    directory, started = Path(tempfile.mkdtemp(prefix="airmirror-sides-")), list[Broker]()
    lender = Lender(str(directory / "lender"), secrets.token_bytes())
    with Listener(lender.address, authkey=lender.key) as listener:
        thread = Thread(target=_lend, args=(listener, directory, started), name="lender", daemon=True)
        thread.start()
        try:
            yield lender
        finally:
            lender.end()
            thread.join()
            _end(started)
    shutil.rmtree(directory)


def _lend(listener: Listener, directory: Path, started: list[Broker]) -> None:
    asked, answer = "", None
    while asked != END:
        with suppress(EOFError, OSError, AuthenticationError), listener.accept() as connection:  # one that has died
            asked = connection.recv()
            if asked == ASK and answer is None:
                answer = _begin(directory, started)
            connection.send(answer)


def _begin(directory: Path, started: list[Broker]) -> list[tuple[Any, ...]] | Exception:
    try:
        return [_lend_out(each) for each in _start(directory, started)]
    except Exception as error:
        return error


def _start(directory: Path, started: list[Broker]) -> list[Broker]:
    for name in ("east", "west"):
        started.append(start_broker(directory, name, IMPATIENT, proxy_port=free_port()))
    return started


def _end(started: list[Broker]) -> None:
    for broker in started:
        broker.kill()


def _lend_out(broker: Broker) -> tuple[Broker, int, float, Path]:
    """What another process needs to know of a broker: it, save its process; that one's id, when it began, and its log."""
    handle = broker.process.handle
    return replace(broker, process=None), handle.pid, handle.create_time(), broker.log  # type: ignore[arg-type]


def _lent(broker: Broker, pid: int, began: float, log: Path) -> Broker:
    process = attach(f"broker {broker.name}", pid, began, log)
    assert process is not None, f"the run's broker {broker.name} has ended: {log}"
    return replace(broker, process=process)

"""Commands in processes of their own, and a watch on the proxies that finds the place of a command's fault.

The request, or the answer, at which a fault is to happen is held until it has happened: the fault is where the plan says,
however busy the machine is.
"""

from __future__ import annotations

import pickle
import signal
import threading
import traceback
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import open_flow
from airmirror_local.proxy import Exchange, Proxy
from chaos import clock
from chaos.stories import Doing, Hit
from support.forked import processes
from support.returns import FORWARD

# Produce, OffsetCommit, CreateTopics, DeleteTopics, DeleteRecords, InitProducerId, AddPartitionsToTxn, EndTxn, CreateAcls,
# DeleteAcls, AlterConfigs, CreatePartitions, IncrementalAlterConfigs, OffsetDelete
WRITES = frozenset({0, 8, 19, 20, 21, 22, 24, 26, 30, 31, 33, 37, 44, 47})
POSITIONS = frozenset({8, 47})  # which have no fence in Kafka: nothing stops one that is on its way


@dataclass(frozen=True)
class Command:
    """What a process is told. ``ended``: the file in which it says how it ended."""

    doing: Doing
    config: Path
    ledger: str
    ended: Path

    @property
    def clock(self) -> Path:
        """The clock of its machine."""
        return self.ended.with_suffix(".clock")


@dataclass(frozen=True)
class EndedCommand:
    """How a command ended: ``error`` or ``crash``, else it is done; ``left``: what it says it has left; ``said``: its lines."""

    error: AirmirrorError | None = None
    crash: str = ""
    left: tuple[str, ...] = ()
    said: tuple[str, ...] = ()

    @property
    def is_done(self) -> bool:
        return not (self.error or self.crash or self.left)


@dataclass(frozen=True)
class Running:
    """A command's process, and the number of its step, from 0."""

    command: Command
    process: BaseProcess
    step: Any

    @classmethod
    def start(cls, command: Command) -> Running:
        step = processes.Value("i", -1, lock=False)
        process = processes.Process(target=_carry_out, args=(command, step), name=str(command.doing))
        process.start()
        return cls(command, process, step)

    @property
    def ended(self) -> EndedCommand | None:
        """How it ended; None: it was killed."""
        if not self.command.ended.exists():
            return None
        found: EndedCommand = pickle.loads(self.command.ended.read_bytes())
        return found


@dataclass
class Watch:
    """The rule of both proxies that holds the frame of a hit; ``reached`` is sent the side of it, and the step at which it is."""

    hit: Hit
    step: Any
    reached: Connection
    _count: int = 0
    _found: bool = False
    _loses: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _go: threading.Event = field(default_factory=threading.Event)

    def on(self, side: str, proxy: Proxy) -> None:
        """Watch a proxy."""
        if self.hit.after:
            proxy.on_answer = partial(self._passes, side)
        else:
            proxy.on_request = partial(self._passes, side)

    def let(self, *, loses: bool) -> None:
        """Let the frame pass that is held, or lose it with its connection, once; no other is held from now on."""
        if not self._go.is_set():
            self._loses, self._found = loses, True
            self._go.set()

    def _passes(self, side: str, exchange: Exchange, frame: bytes) -> bytes | None:
        with self._lock:
            step: int = self.step.value
            if self._found or not self._is_there(exchange, step):
                return frame
            self._found = True
        self.reached.send((side, step))
        self._go.wait()
        return None if self._loses else frame

    def _is_there(self, exchange: Exchange, step: int) -> bool:
        """Whether this is the place: the request of the number, or the next one where the step has fewer."""
        if step < self.hit.step or not (self.hit.every or exchange.api_key in WRITES):
            return False
        self._count += 1
        if self.hit.is_contrary and not self.hit.after and exchange.api_key in POSITIONS:
            return False
        return step > self.hit.step or self._count >= self.hit.number


@contextmanager
def impatient() -> Iterator[None]:
    """Leases of 3 s, and short looks, so that a seed takes seconds; no client that knows topics of another seed."""
    from airmirror.clusters.admin import shared
    from airmirror.flows import leases
    from airmirror.runbooks import draining, stillness
    from airmirror.runbooks.failover import plan
    from airmirror.runbooks.migration import consumers
    from airmirror.runbooks.takeover import copies
    from airmirror.runbooks.takeover.copies import await_stopped
    from airmirror.windows import fence

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shared, "_clients", OrderedDict())
        patched.setattr(fence, "LEASE_MS", 3000)
        patched.setattr(fence, "RENEW_SECONDS", 1.0)
        patched.setattr(leases, "FIRST_SECONDS", 0.1)
        patched.setattr(draining, "LOOK_SECONDS", 0.05)
        patched.setattr(stillness, "SAMPLE_SECONDS", 0.05)
        patched.setattr(consumers, "LOOK_SECONDS", 0.05)
        patched.setattr(plan, "REACH_SECONDS", 5.0)
        patched.setattr(copies, "await_stopped", partial(await_stopped, still=0.2))
        yield


class _Ended(BaseException):
    """Whoever carries a command out was asked to end: by Ctrl-C, or, as Airflow ends a task, by SIGTERM."""


def _end(number: int, frame: Any) -> None:
    raise _Ended


def _carry_out(command: Command, step: Any) -> None:
    said = list[str]()
    signal.signal(signal.SIGTERM, _end)
    clock.follow(command.clock, 0.0)
    try:
        with impatient():
            outcome = EndedCommand(left=_done(command, step, said), said=tuple(said))
    except AirmirrorError as error:
        outcome = EndedCommand(error=error)
    except _Ended:
        return
    except BaseException:
        outcome = EndedCommand(crash=traceback.format_exc())
    draft = command.ended.with_suffix(".draft")
    draft.write_bytes(pickle.dumps(outcome))
    draft.rename(command.ended)


def _done(command: Command, step: Any, said: list[str]) -> tuple[str, ...]:
    """Do it; what it says it has left."""
    from airmirror.runbooks.run import run, undo
    from airmirror.runbooks.runbook import Progress

    doing, book = command.doing, command.doing.runbook
    names = {each.does: doing.steps.index(each.name) for each in book.steps if each.name in doing.steps}

    def phase(text: str) -> None:
        step.value = names.get(text, step.value)

    def open_(name: str) -> Any:
        return open_flow(command.config, name or FORWARD, command.ledger)

    if doing.verb == "run":
        with book.opens(open_, doing.order) as site:
            return run(book, site, doing.order, doing.only, Progress(phase, said.append)).left
    step.value = 0
    if doing.verb == "undo":
        with book.opens(open_, doing.order) as site:
            undo(book, site, doing.order)
        return ()
    assert book.rehearse is not None
    with open_(FORWARD) as opened:
        document = book.rehearse(opened, doing.order, Progress())
    return () if document.is_good else tuple(each["problem"] for each in document.rows("problems"))

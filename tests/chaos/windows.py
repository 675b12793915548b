"""Windows in processes, their slots in processes again, all of which may be killed or stopped at any time.

As with Spark, slots live on when the driver dies, and a slot that dies is tried again by its driver. Processes come from
multiprocessing's fork server, which has imported everything. Who runs and how a window ended is told by files.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil

from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import open_flow, prepare
from airmirror.slot.contract import Slot, SlotResult
from airmirror.windows.following import Follow
from airmirror.windows.window import WindowOrder, run_window
from chaos import clock
from support.forked import processes

ATTEMPTS = 4  # of a slot, as Spark's
LONGEST = 150.0  # seconds: more than any window here may take
CLOCK = "clock"
VERIFY_MS = 1_000  # between two judgements of a window that follows


class SlotsDied(AirmirrorError, transient=True):
    """What SparkJobFailed is to Spark: a slot died as often as it may."""

    window: str

    def __str__(self) -> str:
        return f"a slot of window {self.window!r} died {ATTEMPTS} times"


@dataclass(frozen=True)
class Task:
    """What a window's process is told."""

    config: Path
    flow: str
    ledger: str
    directory: Path  # for its files
    window: str
    slots: int
    spark_url: str | None
    tuning: dict[str, float]
    follow_ms: int = 0

    @property
    def clock(self) -> Path:
        """The file of the clock that all its processes have."""
        return self.directory / CLOCK


@dataclass(frozen=True)
class Ended:
    """How a window ended: raised ``error`` or has rows with errors; ``crash``: an exception that it should not know."""

    window: str
    verified: bool
    rows: int
    copied: int
    errors: tuple[AirmirrorError, ...]
    crash: str
    followed: int = 0  # records that came after its plan


def start_window(task: Task) -> BaseProcess:
    """A window in a process of its own."""
    task.directory.mkdir(parents=True, exist_ok=True)
    process = processes.Process(target=_window, args=(task,), name=f"window {task.window}")
    process.start()
    return process


def ended(task: Task) -> Ended | None:
    """How the window of a task ended; None where it was killed."""
    file = task.directory / f"{task.window}.ended"
    return pickle.loads(file.read_bytes()) if file.exists() else None


def standing_still(task: Task) -> str:
    """Where a window's threads were shortly before it had taken LONGEST."""
    file = task.directory / f"{task.window}.threads"
    return file.read_text() if file.exists() else ""


def alive(directory: Path, role: str) -> list[psutil.Process]:
    """The processes of a role (window, slot) that run now."""
    found = []
    for file in sorted(directory.glob(f"{role}-*")):
        try:
            process = psutil.Process(int(file.name.rpartition("-")[2]))
            if process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= file.stat().st_mtime + 1:
                found.append(process)
        except (psutil.NoSuchProcess, FileNotFoundError):
            continue
    return found


def _window(task: Task) -> None:
    here = _present(task.directory, "window")
    _tune(task, "driver")
    threads = (task.directory / f"{task.window}.threads").open("w")
    faulthandler.dump_traceback_later(LONGEST - 5, file=threads)
    try:
        outcome = _run(task)
    except AirmirrorError as error:
        outcome = Ended(window=task.window, verified=False, rows=0, copied=0, errors=(error,), crash="")
    except BaseException:
        outcome = Ended(window=task.window, verified=False, rows=0, copied=0, errors=(), crash=traceback.format_exc())
    draft = task.directory / f"{task.window}.draft"
    draft.write_bytes(pickle.dumps(outcome))
    draft.rename(task.directory / f"{task.window}.ended")
    here.unlink()


def _run(task: Task) -> Ended:
    with open_flow(task.config, task.flow, task.ledger) as opened:
        staying = replace(opened.flow.window, follow_ms=task.follow_ms, verify_interval_ms=VERIFY_MS)
        opened = replace(opened, flow=replace(opened.flow, window=staying))
        prepared, following = prepare(opened), Follow(None) if task.follow_ms else None
        if task.spark_url is not None:
            from airmirror.on_spark.windows import run

            result = run(prepared, task.spark_url, WindowOrder(task.window, following=following))
        else:
            result = run_window(
                opened.flow,
                opened.ledger,
                prepared.topics,
                lambda slots: _execute(task, slots),
                WindowOrder(task.window, slots=lambda _: task.slots, following=following),
            )
        errors = tuple(row.error for row in result.rows if row.error is not None)
        return Ended(
            window=task.window,
            verified=result.is_verified,
            rows=len(result.rows),
            copied=result.copied,
            errors=errors,
            crash="",
            followed=result.followed.records if result.followed else 0,
        )


def _execute(task: Task, slots: Sequence[Slot]) -> list[SlotResult]:
    """Every slot in a process; one that dies is tried again."""
    results: list[SlotResult] = []
    left = [(slot, 1) for slot in slots]
    while left:
        running = [(slot, attempt, *_start_slot(task, slot)) for slot, attempt in left]
        left = []
        for slot, attempt, process, answer in running:
            try:
                found = answer.recv()
            except EOFError:
                if attempt == ATTEMPTS:
                    raise SlotsDied(slot.window) from None
                left.append((slot, attempt + 1))
                continue
            finally:
                process.join()
                answer.close()
            if isinstance(found, str):
                raise RuntimeError(found)
            results.extend(found)
    return results


def _start_slot(task: Task, slot: Slot) -> tuple[BaseProcess, Connection]:
    answer, its_end = processes.Pipe(duplex=False)
    process = processes.Process(target=_slot, args=(task, slot, its_end), name=f"slot {slot.number}")
    process.start()
    its_end.close()
    return process, answer


def _slot(task: Task, slot: Slot, answer: Connection) -> None:
    from airmirror.slot.attempts import run_slot

    here = _present(task.directory, "slot")
    threads = (task.directory / f"{task.window}-{slot.number}-{os.getpid()}.threads").open("w")
    faulthandler.dump_traceback_later(LONGEST - 15, file=threads)  # before its driver is killed
    _tune(task, "slot")
    try:
        found: object = run_slot(slot)
    except BaseException:
        found = traceback.format_exc()
    with contextlib.suppress(OSError):  # its driver was killed
        answer.send(found)
    here.unlink()


def _present(directory: Path, role: str) -> Path:
    file = directory / f"{role}-{os.getpid()}"
    file.touch()
    return file


def _tune(task: Task, role: str) -> None:
    """Impatience: leases of 3 s, so that a seed takes seconds, and what the plan says; the clock of the role's machine."""
    from airmirror.slot import outbox, source
    from airmirror.windows import fence

    tuning = task.tuning
    clock.follow(task.clock, tuning.get(f"{role}_skew", 0.0))
    fence.LEASE_MS = 3000
    fence.RENEW_SECONDS = 1.0
    source.FETCH_BYTES = int(tuning["fetch_bytes"])
    source.LEAST_PARTITION_BYTES = min(source.LEAST_PARTITION_BYTES, int(tuning["fetch_bytes"]))
    source.ANSWER_SECONDS = tuning["answer_seconds"]
    outbox.ANSWER_SECONDS = tuning["answer_seconds"] + 10

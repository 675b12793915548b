"""Processes of the embedded stack: each in a process group of its own, with a log, ended by id, and never left behind.

However the starter ends (return, exception, Ctrl-C, SIGKILL), its processes end too: next to each stands a shell that
reads from a pipe whose other end only the starter holds, and kills the group when the pipe closes. A process begins only then.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from tenacity import RetryError as NotInTime
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from airmirror.errors import AirmirrorError

LOG_TAIL = 30  # lines
KILLED_SECONDS = 10  # how long the system may take to end what was killed
PAUSED_SECONDS = 10  # how long it may take to stop every thread of what is paused
GUARD = 'read -r released || kill -s KILL -- "-$0"'
GUARDED = 'read -r guarded && exec "$@" </dev/null'


class ProcessFailed(AirmirrorError):
    """A process that ended, or did not become ready in time; ``tail`` is the end of its log."""

    name: str
    what: str
    log: Path
    tail: str
    says = "{0.name} {0.what}. The end of {0.log}:\n{0.tail}"


@dataclass(frozen=True)
class Process:
    """A running process; its id is its process group's id too."""

    name: str
    log: Path
    handle: psutil.Process = field(repr=False)
    guard: subprocess.Popen[bytes] | None = field(repr=False)

    @property
    def pid(self) -> int:
        return self.handle.pid

    @property
    def running(self) -> bool:
        return _runs(self.handle)

    def stop(self, seconds: float = 10) -> None:
        """End the process and its descendants with SIGTERM, with SIGKILL what is still there after ``seconds``."""
        self._end(signal.SIGTERM, seconds)

    def kill(self) -> None:
        """End the process and its descendants with SIGKILL."""
        self._end(signal.SIGKILL, 0)

    def pause(self) -> None:
        """Stop the process without ending it (SIGSTOP): connections stay open and nothing answers, once this returns.

        Raises ProcessFailed when it is not stopped in time.
        """
        self.handle.suspend()
        retrying = Retrying(
            retry=retry_if_result(lambda stopped: not stopped),
            wait=wait_fixed(0.005),
            stop=stop_after_delay(PAUSED_SECONDS),
        )
        try:
            retrying(_is_stopped, self.handle)
        except NotInTime:
            what = f"was not paused after {PAUSED_SECONDS:g} s"
            raise ProcessFailed(self.name, what, self.log, self.log_tail()) from None

    def resume(self) -> None:
        self.handle.resume()

    def log_tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-LOG_TAIL:])

    def _end(self, first: signal.Signals, seconds: float) -> None:
        family = _family(self.handle)
        _signal_group(self.handle, first)
        left = _wait(family, seconds)
        _signal_group(self.handle, signal.SIGKILL)  # also what was forked meanwhile
        for process in left:
            _kill(process)
        _wait({*left, *_family(self.handle)}, KILLED_SECONDS)
        if isinstance(self.handle, psutil.Popen):
            self.handle.wait(KILLED_SECONDS)  # our child: nobody else collects its exit status
        self.release()

    def release(self) -> None:
        """Let the process go on when its starter ends: its guard goes."""
        if self.guard is not None and self.guard.stdin is not None and not self.guard.stdin.closed:
            self.guard.communicate(b"released\n")


def start_process(
    name: str,
    command: Sequence[str],
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Process:
    """Start ``command``, its output appended to ``log``, ``environment`` added to ours; its files are nobody else's to read.

    It ends when its starter does, unless it was released (``airmirror up``); ``attach`` finds it again then.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        handle = psutil.Popen(
            ["/bin/sh", "-c", GUARDED, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            cwd=directory,
            start_new_session=True,
            umask=0o077,
        )
    guard = _start_guard(handle.pid)
    with handle.stdin as begins:
        begins.write(b"guarded\n")
    return Process(name, log, handle, guard)


def attach(name: str, pid: int, started: float, log: Path) -> Process | None:
    """A process that an earlier command started, None when it ended; ``started`` (its creation time) tells it from
    another that was given the same id later."""
    try:
        handle = psutil.Process(pid)
        # A creation time is rebuilt from the time of boot, which may be corrected by a little.
        if abs(handle.create_time() - started) > 1 or handle.status() == psutil.STATUS_ZOMBIE:
            return None
    except psutil.NoSuchProcess:
        return None
    return Process(name, log, handle, None)


def wait_until_ready(process: Process, ready: Callable[[], bool], seconds: float) -> None:
    """Ask ``ready`` until it is true; on failure end the process and raise ProcessFailed with the end of its log."""

    def ready_or_ended() -> bool:
        return not process.running or ready()

    retrying = Retrying(
        retry=retry_if_result(lambda done: not done), wait=wait_fixed(0.05), stop=stop_after_delay(seconds)
    )
    what = ""
    try:
        retrying(ready_or_ended)
        if process.running:
            return
    except NotInTime:
        what = f"was not ready after {seconds:g} s"
    except BaseException:
        process.kill()
        raise
    process.kill()  # before its status is taken: as long as its id is its own, its group is
    what = what or f"ended with status {process.handle.wait(timeout=5)}"
    raise ProcessFailed(process.name, what, process.log, process.log_tail())


def _start_guard(group: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", GUARD, str(group)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _wait(family: Collection[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those that still run after ``seconds``, or sooner none. A zombie has ended; who collects it is its parent's affair."""
    retrying = Retrying(
        retry=retry_if_result(bool),
        wait=wait_fixed(0.02),
        stop=stop_after_delay(seconds),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
    )
    return retrying(lambda: [process for process in family if _runs(process)])


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _is_stopped(process: psutil.Process) -> bool:
    """Whether every thread is stopped: a signal reaches each at its own time, and psutil tells of the first alone."""
    try:
        states = [psutil.Process(thread.id).status() for thread in process.threads()] if psutil.LINUX else []
        return {process.status(), *states} == {psutil.STATUS_STOPPED}
    except psutil.NoSuchProcess:  # a thread that has ended meanwhile
        return False


def _family(leader: psutil.Process) -> set[psutil.Process]:
    """It, what descends from it, and the rest of its group. Spark's Python daemon has a group of its own; who outlives its parent
    descends from init."""
    try:
        found = {leader, *leader.children(recursive=True)}
    except psutil.NoSuchProcess:
        return {leader}
    return found.union(each for each in psutil.process_iter() if _group_of(each.pid) == leader.pid)


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def _signal_group(process: psutil.Process, which: signal.Signals) -> None:
    if process.is_running():  # compares the creation time, so never another process of the same id
        try:
            os.killpg(process.pid, which)
            # A paused process takes no signal but SIGKILL until it goes on.
            os.killpg(process.pid, signal.SIGCONT)
        except (ProcessLookupError, PermissionError):  # macOS refuses a group of which only a zombie is left
            return


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return

"""A delay line before a listener: every byte arrives some time after it was sent, both ways, as if the cluster were far away.

It runs in a process of its own (``python -m airmirror_local.line``), in large pieces, a thread for each end of each direction.
What is large waits in pipes (splice, where the system has it): the kernel hands its pages on and copies nothing, which takes
half of the processor time. ``window`` is the most that is on its way in one direction of a connection, as the smaller of a TCP
connection's two buffers is on a line of that length.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import queue
import resource
import select
import socket
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from airmirror_local.ports import LOOPBACK
from airmirror_local.processes import start_process

PIECE = 1 << 20
SMALL = 64 << 10  # less than that is copied: it does not keep a pipe or a large buffer on its way
MOST_PIPES = 128  # of a direction; what is more is copied
WINDOW = 64 << 20
START_SECONDS = 30
HAS_SPLICE = hasattr(os, "splice")


@contextmanager
def start_line(directory: Path, port: int, target: int, delay: float, window: int = WINDOW) -> Iterator[None]:
    """Listen on ``port`` for what is to arrive at ``target`` after ``delay`` seconds, until the block ends."""
    command = [sys.executable, "-m", "airmirror_local.line", str(port), str(target), str(delay), str(window)]
    process = start_process(f"line {port}", command, directory / f"line-{port}.log")
    try:
        until = time.monotonic() + START_SECONDS
        while "listening" not in process.log_tail():
            if not process.running or time.monotonic() > until:
                raise RuntimeError(f"the delay line did not start: {process.log_tail()}")
            time.sleep(0.02)  # a process tells by its log alone
        yield
    finally:
        process.kill()


@dataclass(frozen=True)
class _Pipe:
    """Both ends of a pipe that is empty or holds one piece."""

    out: int
    into: int

    @classmethod
    def new(cls) -> _Pipe:
        pipe = cls(*os.pipe())
        with suppress(OSError):  # more than one user may have: it stays as large as it is
            fcntl.fcntl(pipe.into, fcntl.F_SETPIPE_SZ, PIECE)
        return pipe

    def close(self) -> None:
        os.close(self.out)
        os.close(self.into)


class _Way:
    """One direction of a connection: pieces on their way, each with the time at which it arrives."""

    def __init__(self, delay: float, window: int) -> None:
        self._delay, self._window = delay, window
        self._pieces: queue.SimpleQueue[tuple[float, _Pipe | bytes, int]] = queue.SimpleQueue()
        self._spare: list[_Pipe] = []
        self._pipes: list[_Pipe] = []
        self._under_way = 0
        self._ended = False
        self._room = threading.Condition()

    def take(self, origin: socket.socket) -> None:
        """Take what is sent, up to the end."""
        size = 1
        while size and not self._ended:
            with self._room:
                self._room.wait_for(lambda: self._ended or self._under_way < self._window)
                most = min(PIECE, max(1, self._window - self._under_way))
            piece: _Pipe | bytes = b""
            try:
                piece, size = self._next(origin, most)
            except OSError:  # the other direction has closed it
                size = 0
            due = time.monotonic() + self._delay
            with self._room:
                self._under_way += size
            self._pieces.put((due, piece, size))

    def _next(self, origin: socket.socket, most: int) -> tuple[_Pipe | bytes, int]:
        """Wait for the next piece, of at most so many bytes; of size 0: the end."""
        poll = select.poll()  # any number of descriptors
        poll.register(origin, select.POLLIN)
        poll.poll()
        there = int.from_bytes(fcntl.ioctl(origin, termios.FIONREAD, bytes(4)), sys.byteorder)
        if min(there, most) >= SMALL and (pipe := self._a_pipe()):
            size = os.splice(origin.fileno(), pipe.into, most)
            if size:
                return pipe, size
        found = origin.recv(most)
        return found, len(found)

    def _a_pipe(self) -> _Pipe | None:
        with self._room:
            if self._spare:
                return self._spare.pop()
        if not HAS_SPLICE or len(self._pipes) >= MOST_PIPES:
            return None
        with suppress(OSError):  # as many as the process may have
            self._pipes.append(_Pipe.new())
            return self._pipes[-1]
        return None

    def give(self, goal: socket.socket) -> bool:
        """Give on each piece when its time has come, and then the end; False: who was to get it is gone."""
        try:
            while self._give_one(goal):
                pass
        except OSError:
            with self._room:
                self._ended = True
                self._room.notify()
        return not self._ended

    def _give_one(self, goal: socket.socket) -> bool:
        due, piece, size = self._pieces.get()
        if (seconds := due - time.monotonic()) > 0:
            time.sleep(seconds)  # the length of the line
        if not size:
            goal.shutdown(socket.SHUT_WR)
            return False
        if isinstance(piece, bytes):
            goal.sendall(piece)
        else:
            left = size
            while left:
                left -= os.splice(piece.out, goal.fileno(), left)
        with self._room:
            if isinstance(piece, _Pipe):
                self._spare.append(piece)
            self._under_way -= size
            self._room.notify()
        return True

    def close(self) -> None:
        """Close the pipes, when both ends are done."""
        for pipe in self._pipes:
            pipe.close()


def run(port: int, target: int, delay: float, window: int) -> None:
    """Accept connections for ever."""
    with socket.create_server((LOOPBACK, port), backlog=128) as listener:
        print("listening", flush=True)
        while True:
            client, _ = listener.accept()
            try:
                broker = socket.create_connection((LOOPBACK, target))
            except OSError:  # nobody is there, and so it looks to the client
                client.close()
                continue
            for end in (client, broker):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for origin, goal in ((client, broker), (broker, client)):
                threading.Thread(target=_carry, args=(_Way(delay, window), origin, goal), daemon=True).start()


def _carry(way: _Way, origin: socket.socket, goal: socket.socket) -> None:
    taking = threading.Thread(target=way.take, args=(origin,), daemon=True)
    taking.start()
    if not way.give(goal):
        _close(goal)
        _close(origin)
    taking.join()
    way.close()


def _close(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:  # not connected any more
        return


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m airmirror_local.line", description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("target", type=int)
    parser.add_argument("delay", type=float, help="seconds, each way")
    parser.add_argument("window", type=int, help="bytes")
    given = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # pipes
    run(given.port, given.target, given.delay, given.window)


if __name__ == "__main__":
    main()

"""A delay line before a listener: every byte arrives some time after it was sent, both ways, as if the cluster were far away.

It runs in a process of its own (``python -m airmirror_local.line``), in large pieces, a thread for each end of each direction:
receiving and sending release the interpreter, so that it carries more than a gigabyte a second. ``window`` is the most that is
on its way in one direction of a connection, as the smaller of a TCP connection's two buffers is on a line of that length.
"""

from __future__ import annotations

import argparse
import queue
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airmirror_local.ports import LOOPBACK
from airmirror_local.processes import start_process

PIECE = 1 << 20
SMALL = 64 << 10  # less than that does not keep a large buffer on its way
WINDOW = 64 << 20
START_SECONDS = 30


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


class _Way:
    """One direction of a connection: pieces on their way, each with the time at which it arrives."""

    def __init__(self, delay: float, window: int) -> None:
        self._delay, self._window = delay, window
        self._pieces: queue.SimpleQueue[tuple[float, bytearray | bytes, int]] = queue.SimpleQueue()
        self._spare: list[bytearray] = []
        self._under_way = 0
        self._room = threading.Condition()

    def take(self, origin: socket.socket) -> None:
        """Take what is sent, up to the end."""
        size = 1
        while size:
            with self._room:
                self._room.wait_for(lambda: self._under_way < self._window)
                piece = self._spare.pop() if self._spare else bytearray(PIECE)
            try:
                size = origin.recv_into(piece)
            except OSError:  # the other direction has closed it
                size = 0
            due, given = time.monotonic() + self._delay, piece if size >= SMALL else bytes(piece[:size])
            with self._room:
                self._under_way += size
                if given is not piece:
                    self._spare.append(piece)
            self._pieces.put((due, given, size))

    def give(self, goal: socket.socket) -> None:
        """Give on each piece when its time has come, and then the end."""
        while True:
            due, piece, size = self._pieces.get()
            if (seconds := due - time.monotonic()) > 0:
                time.sleep(seconds)  # the length of the line
            try:
                if not size:
                    goal.shutdown(socket.SHUT_WR)
                    return
                goal.sendall(memoryview(piece)[:size])
            except OSError:  # who was to get it is gone
                _close(goal)
                return
            with self._room:
                if isinstance(piece, bytearray):
                    self._spare.append(piece)
                self._under_way -= size
                self._room.notify()


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
                way = _Way(delay, window)
                threading.Thread(target=way.take, args=(origin,), daemon=True).start()
                threading.Thread(target=way.give, args=(goal,), daemon=True).start()


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
    run(given.port, given.target, given.delay, given.window)


if __name__ == "__main__":
    main()

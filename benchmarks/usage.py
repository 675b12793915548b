"""Processor time and peak memory of process trees."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

SAMPLE_SECONDS = 0.5


def processor_seconds(root: psutil.Process) -> float:
    """User and system time of a process, its descendants, and those of them that have ended and were waited for."""
    total = 0.0
    for process in [root, *root.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += sum(getattr(times, name, 0.0) for name in ("user", "system", "children_user", "children_system"))
    return total


def machine_seconds() -> float:
    """Processor time of everything on this machine since it started, waiting left out."""
    times = psutil.cpu_times()
    return sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))


@dataclass
class Watch:
    """What a process and its descendants have used since the watch began; both grow with every sample."""

    root: psutil.Process
    largest_python: int = 0  # bytes: the peak resident memory of the largest Python process
    _before: dict[tuple[int, float], float] = field(default_factory=dict, repr=False)
    _last: dict[tuple[int, float], float] = field(default_factory=dict, repr=False)
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def processor_seconds(self) -> float:
        """User and system time; what a process uses between its last sample and its end is left out."""
        return sum(used - self._before.get(process, 0.0) for process, used in self._last.items())

    def sample(self) -> None:
        for process in [self.root, *self.root.children(recursive=True)]:
            try:
                times = process.cpu_times()
                self._last[process.pid, process.create_time()] = times.user + times.system
                if "python" in process.name():
                    self.largest_python = max(self.largest_python, _peak(process))
            except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
                continue

    def run(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            self.sample()


@contextmanager
def watch(root: psutil.Process) -> Iterator[Watch]:
    """Sample ``root`` and its descendants meanwhile: Spark ends idle Python workers, whose time would be lost."""
    watched = Watch(root)
    watched.sample()
    watched._before.update(watched._last)
    watched.largest_python = 0
    thread = threading.Thread(target=watched.run, daemon=True)
    thread.start()
    try:
        yield watched
    finally:
        watched._stop.set()
        thread.join()
        watched.sample()


def _peak(process: psutil.Process) -> int:
    """VmHWM, the kernel's own high-water mark; without /proc what is resident now."""
    status = Path(f"/proc/{process.pid}/status")
    if status.exists():
        marks = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(marks[0].split()[1]) * 1024 if marks else 0
    return int(process.memory_info().rss)

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
class Peak:
    """The largest resident memory of a single Python process that was seen, in bytes."""

    bytes: int = 0
    stopped: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def megabytes(self) -> float:
        return self.bytes / 1e6


@contextmanager
def python_peak(root: psutil.Process) -> Iterator[Peak]:
    """Watch the Python processes under ``root``: VmHWM, the kernel's own high-water mark, or what samples see without it."""
    peak = Peak()

    def watch() -> None:
        while not peak.stopped.wait(SAMPLE_SECONDS):
            peak.bytes = max([peak.bytes, *map(_peak, root.children(recursive=True))])

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        peak.stopped.set()
        thread.join()


def _peak(process: psutil.Process) -> int:
    try:
        if "python" not in process.name():
            return 0
        status = Path(f"/proc/{process.pid}/status")
        if status.exists():
            marks = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
            return int(marks[0].split()[1]) * 1024 if marks else 0
        return int(process.memory_info().rss)
    except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
        return 0

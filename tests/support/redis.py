"""A Redis for CeleryExecutor, which keeps nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airmirror_local.ports import LOOPBACK, answers, free_port
from airmirror_local.processes import start_process, wait_until_ready
from support.needs import redis_server


@contextmanager
def running_redis(directory: Path) -> Iterator[str]:
    """The URL of a running Redis, whose log is in ``directory``. Skips the test where the machine has none."""
    port = free_port()
    command = [redis_server(), "--port", str(port), "--bind", LOOPBACK, "--save", "", "--appendonly", "no"]
    process = start_process("Redis", command, directory / "redis.log", directory=directory)
    try:
        wait_until_ready(process, lambda: answers(port), 20)
        yield f"redis://{LOOPBACK}:{port}/0"
    finally:
        process.stop()

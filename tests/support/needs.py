"""Programs of the machine that some tests need. A test skips where one is missing; the reason names the way to get it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from airmirror_local.java import java_home


def javac() -> Path:
    """The Java compiler. Skips the test where the machine has only a JRE."""
    program = java_home() / "bin" / "javac"
    if not program.exists():
        pytest.skip(
            "programs in Java are compiled, and this machine has a JRE only: apt install openjdk-17-jdk-headless"
        )
    return program


def cc() -> Path:
    """The C compiler. Skips the test where the machine has none."""
    program = shutil.which("cc")
    if program is None:
        pytest.skip("a library in C is compiled, and this machine has no compiler: apt install gcc")
    return Path(program)


def redis_server() -> str:
    """The program of Redis. Skips the test where the machine has none."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("CeleryExecutor needs Redis: apt install redis-server")
    return program


def docker() -> None:
    """A Docker engine that answers, with Compose. Skips the test where there is none."""
    for words in (("compose", "version"), ("info",)):
        try:
            subprocess.run(["docker", *words], capture_output=True, text=True, check=True)
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            said = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1]
            pytest.skip(
                f"containers are started, and `docker {' '.join(words)}` says: {said}: https://docs.docker.com/engine/install, "
                "then start it"
            )

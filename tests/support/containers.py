"""The Docker engine: its commands, the images that it has, and the processor time of its own processes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

import psutil

from support import ROOT


def run(*words: str, directory: Path = ROOT) -> str:
    """The command's output; fails with all that it said."""
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def is_to_be_had(image: str) -> bool:
    """Whether the engine has the image, or is given it by a registry."""
    commands = (["docker", "image", "inspect", image], ["docker", "pull", "--quiet", image])
    return any(subprocess.run(command, capture_output=True).returncode == 0 for command in commands)


def engine() -> list[psutil.Process]:
    """The engine's processes on this machine, and those that have begun its containers; none, where it is on another one."""
    found = []
    for process in psutil.process_iter(["name", "cmdline"]):
        name, command = process.info["name"] or "", process.info["cmdline"] or []
        if name in ("dockerd", "containerd") or (name.startswith("containerd-shim") and "moby" in command):
            found.append(process)
    return found


def of_container(identity: str) -> list[psutil.Process]:
    """The processes of a container, where they are this machine's."""
    _, *pids = run("docker", "top", identity, "-eo", "pid").split()
    return [psutil.Process(int(pid)) for pid in pids]


def processor_seconds(processes: Iterable[psutil.Process]) -> float:
    """The processor time of the processes so far, and of those that they have begun and that have ended."""
    return sum(sum(process.cpu_times()[:4]) for process in processes)

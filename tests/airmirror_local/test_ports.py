"""A port is given once, by whatever process it is asked for."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from airmirror_local.ports import answers, free_port

# A process that is given two ports by a known order of numbers, tells them, and lives until its input ends.
ANOTHER = """
import random, sys
from airmirror_local.ports import free_port
random.seed(33)
print(free_port(), free_port(), flush=True)
sys.stdin.read()
"""


def test_two_processes_are_never_given_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ANOTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as another:
        assert another.stdout is not None
        theirs = {int(port) for port in another.stdout.readline().split()}
        assert not any(map(answers, theirs)), "nobody listens there yet"
        ours = random.Random(33)
        monkeypatch.setattr(random, "randint", ours.randint)
        assert theirs.isdisjoint({free_port(), free_port()})

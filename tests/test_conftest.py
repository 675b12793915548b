"""The guard against processes that tests leave behind does its duty."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

LEAVES_A_PROCESS = """
import subprocess

import conftest

conftest.END_SECONDS = 1

def test_leaves_a_process():
    print("started", subprocess.Popen(["sleep", "600"]).pid)

def test_next():
    pass
"""


@pytest.mark.seconds
def test_tests_of_servers_are_known_by_their_fixtures() -> None:
    files = ["windows/test_logs.py", "windows/test_plan.py", "airmirror_local/test_brokers.py", "cli/test_tables.py"]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not servers", *files]
    quick = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent, check=False).stdout
    assert "test_plan.py::test_every_partition_is_in_one_slot" in quick and "test_tables.py::" in quick
    assert "test_logs.py::" not in quick and "test_brokers.py::" not in quick


@pytest.mark.seconds
def test_a_test_that_leaves_a_process_fails_and_the_process_ends(tmp_path: Path) -> None:
    (tmp_path / "test_leak.py").write_text(LEAVES_A_PROCESS)
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-s", "--rootdir", str(tmp_path), str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent, check=False)
    assert "2 passed, 1 error" in run.stdout
    assert "left running: sleep 600" in run.stdout
    (started,) = (
        int(line.split()[-1]) for line in run.stdout.splitlines() if "started" in line and "print" not in line
    )
    assert not psutil.pid_exists(started)

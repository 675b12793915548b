"""The guard against processes that tests leave behind does its duty."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from conftest import TOGETHER

LEAVES_A_PROCESS = """
import subprocess

import conftest

conftest.END_SECONDS = 1

def test_leaves_a_process():
    print("started", subprocess.Popen(["sleep", "600"]).pid)

def test_next():
    pass
"""

SKIPS = """
import pytest

@pytest.mark.parametrize("case", [1, 2])
def test_of_a_page(case):
    pytest.skip("the console's pages need Chromium: apt install chromium")

def test_of_another():
    pytest.skip("CeleryExecutor needs Redis: apt install redis-server")

def test_that_passes():
    pass
"""


def run(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """pytest with the guard of these tests over the tests in a directory."""
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "--rootdir", str(directory), *options, str(directory)]
    return subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent, check=False)


def test_what_runs_together_is_there() -> None:
    places = [place for group in TOGETHER.values() for place in group]
    assert [place for place in places if not (Path(__file__).parent / place).exists()] == []


@pytest.mark.seconds
@pytest.mark.parametrize(
    ("options", "status"), [pytest.param(("-n", "0"), 0, marks=pytest.mark.long), (("-n", "1", "--no-skips"), 1)]
)
def test_each_reason_of_a_skip_is_one_of_the_last_lines_and_may_fail_the_run(
    tmp_path: Path, options: tuple[str, ...], status: int
) -> None:
    (tmp_path / "test_skips.py").write_text(SKIPS)
    ended = run(tmp_path, *options)
    assert [line for line in ended.stdout.splitlines() if line][-3:-1] == [
        "1 skipped: CeleryExecutor needs Redis: apt install redis-server",
        "2 skipped: the console's pages need Chromium: apt install chromium",
    ]
    assert ended.returncode == status


@pytest.mark.seconds
def test_tests_of_servers_are_known_by_their_fixtures() -> None:
    files = ["windows/test_epochs.py", "windows/test_plan.py", "airmirror_local/test_brokers.py", "cli/test_tables.py"]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not servers", *files]
    quick = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent, check=False).stdout
    assert "test_plan.py::test_every_partition_is_in_one_slot" in quick and "test_tables.py::" in quick
    assert "test_epochs.py::" not in quick and "test_brokers.py::" not in quick


@pytest.mark.seconds
def test_a_test_that_leaves_a_process_fails_and_the_process_ends(tmp_path: Path) -> None:
    (tmp_path / "test_leak.py").write_text(LEAVES_A_PROCESS)
    ended = run(tmp_path, "-s")
    assert "2 passed, 1 error" in ended.stdout
    assert "left running: sleep 600" in ended.stdout
    (started,) = (
        int(line.split()[-1]) for line in ended.stdout.splitlines() if "started" in line and "print" not in line
    )
    assert not psutil.pid_exists(started)

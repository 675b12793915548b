"""Processes of the embedded stack end with their starter, however it ends, and show their log when they fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tenacity import Retrying, stop_after_delay, wait_fixed

from airmirror_local import processes
from airmirror_local.processes import ProcessFailed, attach, start_process, wait_until_ready

SLEEP = ["sleep", "600"]
# Starts a shell with a child, tells their ids, and ends as told.
STARTER = """
import os, signal, sys, time
from pathlib import Path
from airmirror_local.processes import start_process
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore both
signal.signal(signal.SIGHUP, signal.SIG_DFL)
process = start_process("shell", ["sh", "-c", "sleep 600 & echo $!; wait"], Path(sys.argv[1]))
while not (child := process.log.read_text().strip()):
    time.sleep(0.01)
print(process.pid, child, flush=True)
how = sys.argv[2]
if how == "exception":
    raise ValueError
if how == "return":
    sys.exit()
while True:
    time.sleep(0.05)  # a signal that comes just before a sleep begins is looked at after it
"""


def group(leader: int) -> list[psutil.Process]:
    """The processes of a group; those that ended and were not collected by init yet don't count."""

    def belongs(process: psutil.Process) -> bool:
        try:
            return os.getpgid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE
        except (ProcessLookupError, psutil.NoSuchProcess):  # it ended meanwhile
            return False

    return [process for process in psutil.process_iter() if belongs(process)]


@pytest.mark.parametrize("how", ["return", "exception", "SIGINT", "SIGTERM", "SIGKILL", "SIGHUP"])
def test_nothing_is_left_when_the_starter_ends(tmp_path: Path, how: str) -> None:
    command = [sys.executable, "-c", STARTER, str(tmp_path / "log"), how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as starter:
        assert starter.stdout is not None
        started = [psutil.Process(int(pid)) for pid in starter.stdout.readline().split()]
        assert len(started) == 2
        if how.startswith("SIG"):
            starter.send_signal(signal.Signals[how])
        try:
            starter.wait(20)
        finally:
            starter.kill()
    for attempt in Retrying(stop=stop_after_delay(10), wait=wait_fixed(0.05), reraise=True):
        with attempt:
            assert group(started[0].pid) == []


@pytest.mark.parametrize("started", ["_start_guard", "Process"])
def test_nothing_is_left_when_the_starter_is_killed_while_it_starts_one(tmp_path: Path, started: str) -> None:
    """Before its guard is there, and when it is."""
    log, ids = tmp_path / "log", tmp_path / "ids"
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from airmirror_local import processes\n"
        "def killed(*given):\n"
        "    found = given[0] if sys.argv[1] == '_start_guard' else given[2].pid\n"
        "    Path(sys.argv[3]).write_text(str(found))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "setattr(processes, sys.argv[1], killed)\n"
        "processes.start_process('shell', ['sh', '-c', 'echo begun; exec sleep 600'], Path(sys.argv[2]))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, started, log, ids], stderr=subprocess.DEVNULL)
    assert done.returncode == -signal.SIGKILL
    leader = int(ids.read_text())
    try:
        for attempt in Retrying(stop=stop_after_delay(10), wait=wait_fixed(0.05), reraise=True):
            with attempt:
                assert group(leader) == []
    finally:
        for each in group(leader):
            each.kill()
    assert started == "Process" or log.read_text() == ""


def test_stop_ends_the_whole_group(tmp_path: Path) -> None:
    process = start_process("shell", ["sh", "-c", "sleep 600 & echo started; wait"], tmp_path / "log")
    wait_until_ready(process, lambda: process.log_tail() == "started", 10)
    assert len(group(process.pid)) == 2
    process.stop()
    assert not process.running
    assert group(process.pid) == []
    process.stop()  # once more does no harm


def test_stop_ends_one_that_ignores_sigterm(tmp_path: Path) -> None:
    script = "trap '' TERM; echo trapped; while true; do sleep 600; done"
    process = start_process("shell", ["sh", "-c", script], tmp_path / "log")
    wait_until_ready(process, lambda: process.log_tail() == "trapped", 10)
    process.stop(seconds=0.5)
    assert not process.running


def test_stop_ends_one_of_the_group_that_has_outlived_its_parent(tmp_path: Path) -> None:
    """It descends from init then. As the worker that Airflow's provider of OpenLineage forks."""
    trapping = "trap '' TERM; echo trapped; while true; do sleep 600; done"
    process = start_process("shell", ["sh", "-c", f'(sh -c "{trapping}" &); exec sleep 600'], tmp_path / "log")
    wait_until_ready(process, lambda: process.log_tail() == "trapped", 10)
    process.stop(seconds=0.5)
    assert group(process.pid) == []


def test_stop_ends_what_is_forked_while_it_stops(tmp_path: Path) -> None:
    script = "trap '(trap \"\" TERM; exec sleep 600) & exit' TERM; echo trapped; while true; do sleep 0.05; done"
    process = start_process("shell", ["sh", "-c", script], tmp_path / "log")
    wait_until_ready(process, lambda: process.log_tail() == "trapped", 10)
    process.stop()
    left = group(process.pid)
    for each in left:
        each.kill()
    assert left == []


def test_every_thread_of_one_that_is_paused_has_stopped(tmp_path: Path) -> None:
    script = (
        "import threading\n"
        "for _ in range(8): threading.Thread(target=lambda: [i * i for i in iter(int, 1)], daemon=True).start()\n"
        "print('started', flush=True)\n"
        "threading.Event().wait()"
    )
    process = start_process("threads", [sys.executable, "-c", script], tmp_path / "log")
    wait_until_ready(process, lambda: process.log_tail() == "started", 10)
    try:
        for _ in range(2):
            process.pause()
            threads = [psutil.Process(thread.id) for thread in process.handle.threads()]
            assert {thread.status() for thread in threads} == {psutil.STATUS_STOPPED}
            process.resume()
    finally:
        process.kill()


def test_one_that_does_not_stop_is_not_called_paused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PAUSED_SECONDS", 0.1)
    process = start_process("shell", SLEEP, tmp_path / "log")
    try:
        monkeypatch.setattr(process.handle, "suspend", lambda: None)  # a signal that is on its way
        with pytest.raises(ProcessFailed, match=r"was not paused after 0\.1 s"):
            process.pause()
    finally:
        process.kill()


def test_one_that_ends_instead_of_getting_ready_shows_its_log(tmp_path: Path) -> None:
    process = start_process("shell", ["sh", "-c", "(sleep 600 &); echo no such luck; exit 3"], tmp_path / "log")
    with pytest.raises(ProcessFailed, match=r"(?s)shell ended with status 3.*no such luck"):
        wait_until_ready(process, lambda: False, 10)
    assert group(process.pid) == [], "what it has left to init"


def test_one_that_is_not_ready_in_time_is_ended(tmp_path: Path) -> None:
    process = start_process("shell", SLEEP, tmp_path / "log")
    with pytest.raises(ProcessFailed, match=r"was not ready after 0\.2 s"):
        wait_until_ready(process, lambda: False, 0.2)
    assert not process.running


def test_one_that_outlives_its_starter_is_found_again(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from airmirror_local.processes import start_process\n"
        "process = start_process('shell', ['sleep', '600'], Path(sys.argv[1]))\n"
        "process.release()\n"
        "print(process.pid, process.handle.create_time())"
    )
    answer = subprocess.run([sys.executable, "-c", script, str(tmp_path / "log")], capture_output=True, check=True)
    pid, started = answer.stdout.split()
    process = attach("shell", int(pid), float(started), tmp_path / "log")
    assert process is not None
    assert process.running
    process.stop()
    assert attach("shell", int(pid), float(started), tmp_path / "log") is None


def test_another_process_with_the_same_id_is_not_taken_for_it(tmp_path: Path) -> None:
    assert attach("shell", os.getpid(), 1.0, tmp_path / "log") is None

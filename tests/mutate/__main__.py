"""``python -m mutate``: apply every mutation in a copy of this checkout, run its tests; status 1 if one survives.

The copy is beside the checkout's other scratch files, in ``.local``; the checkout itself is not touched. First the tests
run as things are: a test that fails by itself kills nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from airmirror.local import LOCAL
from mutate.mutations import DoesNotApply, Mutation, load, mutated

ROOT = Path(__file__).resolve().parents[2]
LINKED = (".venv", ".local")
LEFT_OUT = shutil.ignore_patterns(*LINKED, ".git", "__pycache__", "*.egg-info", ".*_cache", ".hypothesis")
PASSED, FAILED = 0, 1  # pytest's
QUICK = ("-m", "not servers and not long")
MOST_SECONDS = 900.0


class Fate(StrEnum):
    KILLED = "killed"
    SURVIVED = "SURVIVED"
    BROKEN = "DID NOT RUN"  # it does not apply, or its tests can't be collected


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m mutate", description=__doc__)
    parser.add_argument("--only", default="", help="those whose name or file has this text in it")
    parser.add_argument("--quick", action="store_true", help="those that tests without servers notice, by these tests")
    parser.add_argument("--list", action="store_true", help="only see whether all apply")
    parser.add_argument("--no-baseline", action="store_true", help="do not run the tests as things are first")
    chosen = parser.parse_args()
    mutations = [each for each in load() if chosen.only in each.name or chosen.only in each.file]
    mutations = [each for each in mutations if each.quick or not chosen.quick]
    if not mutations:  # pytest would run all tests of a list of none
        parser.error(f"no {'quick ' if chosen.quick else ''}mutation has {chosen.only!r} in its name or file")
    if chosen.list:
        sys.exit(1 if sum(not _applies(mutation) for mutation in mutations) else 0)
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="mutate-", dir=LOCAL))
    try:
        fates = _run(mutations, directory, not chosen.no_baseline, QUICK if chosen.quick else ())
    finally:
        shutil.rmtree(directory)
    bad = [(name, fate) for name, fate in fates if fate is not Fate.KILLED]
    print(f"{len(fates) - len(bad)} of {len(fates)} mutations were killed")
    for name, fate in bad:
        print(f"  {fate}: {name}")
    sys.exit(1 if bad else 0)


def _run(
    mutations: Sequence[Mutation], directory: Path, baseline: bool, options: Sequence[str]
) -> list[tuple[str, Fate]]:
    copy = directory / "checkout"
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT, symlinks=True)
    for name in LINKED:
        (copy / name).symlink_to(ROOT / name)
    if baseline:
        tests = sorted({test for mutation in mutations for test in mutation.tests})
        status, output = _pytest(copy, [*options, *tests], most=10 * MOST_SECONDS)
        if status != PASSED:
            print(output)
            sys.exit("the tests fail as things are: no mutation was applied")
    fates = []
    for number, mutation in enumerate(mutations, start=1):
        begun = time.monotonic()
        fate, reason = _fate(mutation, copy, options)
        seconds = time.monotonic() - begun
        print(f"{number}/{len(mutations)} {fate}: {mutation.name} ({seconds:.0f} s){reason}", flush=True)
        fates.append((mutation.name, fate))
    return fates


def _fate(mutation: Mutation, copy: Path, options: Sequence[str]) -> tuple[Fate, str]:
    file = copy / mutation.file
    text = file.read_text()
    try:
        file.write_text(mutated(mutation, text))
        status, output = _pytest(copy, [*options, *mutation.tests], most=MOST_SECONDS)
    except DoesNotApply as error:
        return Fate.BROKEN, f"\n  {error}"
    except subprocess.TimeoutExpired:
        return Fate.KILLED, " by time"
    finally:
        file.write_text(text)
    if status == PASSED:
        return Fate.SURVIVED, ""
    if status == FAILED:
        return Fate.KILLED, ""
    return Fate.BROKEN, f"\n{output[-3000:]}"


def _pytest(copy: Path, arguments: Sequence[str], most: float) -> tuple[int, str]:
    """Pytest's status and output, of the copy's library and tests; ``arguments``: its options, and the tests."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "--no-header",
        "--durations=0",
        *arguments,
    ]
    environment = os.environ | {"PYTHONPATH": f"{copy / 'include'}", "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        command,
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as ran:
        try:
            output, _ = ran.communicate(timeout=most)
        except subprocess.TimeoutExpired:
            os.killpg(ran.pid, signal.SIGKILL)  # its brokers too
            raise
    return ran.returncode, output


def _applies(mutation: Mutation) -> bool:
    try:
        mutated(mutation, (ROOT / mutation.file).read_text())
    except (DoesNotApply, FileNotFoundError) as error:
        print(error)
        return False
    return True


if __name__ == "__main__":
    main()

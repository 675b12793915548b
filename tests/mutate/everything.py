"""``python -m mutate.everything``: mutmut changes every expression of ``wire``, ``windows`` and ``offsets``, one at a time.

It runs in a copy of this checkout, against the tests that need no broker, so what only brokers can tell survives here: the
list that it prints is to be read by a person. mutmut is installed beside the environment, into ``.local/mutmut``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from airmirror.local import LOCAL
from mutate.__main__ import LEFT_OUT, LINKED, ROOT

MUTMUT = LOCAL / "mutmut"
VERSION = "mutmut==3.8.1"
ROOMS = ("wire", "windows", "slot", "offsets")
TESTS = (
    "tests/wire/test_formats.py",
    "tests/wire/test_records.py",
    "tests/wire/test_merging.py",
    "tests/wire/test_message_sets.py",
    "tests/windows/test_intake.py",
    "tests/windows/test_plan.py",
    "tests/windows/test_pace.py",
    "tests/offsets/test_translation.py",
    "tests/offsets/test_checkpoints.py::test_mirrormaker_2s_rule",
    "tests/model",
)
# mutmut knows packages in ``src``.
SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = {files}
also_copy = ["tests", "benchmarks", "dags"]
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-p", "no:cacheprovider", "-m", "not long", "-o", "pythonpath=. tests", "-o", "timeout=0"]
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m mutate.everything", description=__doc__)
    parser.add_argument("--only", default="", help="files whose path has this text in it")
    chosen = parser.parse_args()
    if not (MUTMUT / "mutmut").exists():
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            "--target",
            str(MUTMUT),
            VERSION,
        ]
        subprocess.run(command, check=True)
    files = [
        f"src/airmirror/{room}/{file.name}"
        for room in ROOMS
        for file in sorted((ROOT / "include/airmirror" / room).glob("*.py"))
        if chosen.only in f"{room}/{file.name}" and file.name != "__init__.py"
    ]
    directory = Path(tempfile.mkdtemp(prefix="mutmut-", dir=LOCAL))
    try:
        copy = directory / "checkout"
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT, symlinks=True)
        (copy / "include").rename(copy / "src")
        for name in LINKED:
            (copy / name).symlink_to(ROOT / name)
        with (copy / "pyproject.toml").open("a") as project:
            project.write(SETTINGS.format(files=files, tests=list(TESTS)))
        environment = os.environ | {"PYTHONPATH": str(MUTMUT)}
        ran = subprocess.run([sys.executable, "-m", "mutmut", "run"], cwd=copy, env=environment)
        subprocess.run([sys.executable, "-m", "mutmut", "results"], cwd=copy, env=environment, check=False)
    finally:
        shutil.rmtree(directory)
    sys.exit(ran.returncode)


if __name__ == "__main__":
    main()

"""The table of scenarios names thirteen, and tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

import mirroring

HERE = Path(__file__).parent
ROW = re.compile(r"^\| (?!scenario \||---)(?P<scenario>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)
FILE = re.compile(r"``([\w/]+\.py)``: ([\w, ]+)")


def test_each_scenario_names_tests_that_there_are() -> None:
    rows = ROW.findall(mirroring.__doc__ or "")
    assert len(rows) == 13
    for scenario, tests in rows:
        named = [
            (file, name)
            for file, names in FILE.findall(tests)
            for name in re.split(r", | ", names.strip())
            if "_" in name
        ]
        assert named, scenario
        for file, name in named:
            path = HERE / file if (HERE / file).exists() else HERE.parent / file
            assert f"def test_{name}(" in path.read_text(), f"{scenario}: {name} in {file}"

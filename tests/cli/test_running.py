"""Commands without options talk to the stack of `airmirror up`, and judge as its Airflow does."""

from __future__ import annotations

from pathlib import Path

import pytest

from airmirror.cli import running
from airmirror.cli.options import expectations_in
from airmirror.quality.suites import OWN


def test_the_stacks_own_expectations_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a command might let through what a suite of the stack's Airflow holds."""
    monkeypatch.setattr(running, "HOME", tmp_path.resolve())
    stack, given = tmp_path / "mirror.properties", tmp_path / "mine"
    assert expectations_in(stack, None) == OWN
    (tmp_path / "include" / "expectations").mkdir(parents=True)
    assert expectations_in(stack, None) == tmp_path.resolve() / "include" / "expectations"
    assert expectations_in(stack, given) == given
    assert expectations_in(tmp_path / "other.properties", None) is None

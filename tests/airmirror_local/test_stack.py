"""The stack's own places: expectations of where it was started count in it too."""

from __future__ import annotations

from pathlib import Path

from airmirror.quality.suites import OWN, default_directory, load_suites
from airmirror_local.stack import link_expectations

SUITE = "name: mine\nexpectations:\n  - type: expect_column_values_to_be_between\n    kwargs: {column: copied, max_value: 1}\n"


def test_expectations_of_where_it_was_started_count(tmp_path: Path) -> None:
    home, stack = tmp_path / "checkout", tmp_path / "up"
    (home / "include" / "expectations").mkdir(parents=True)
    stack.mkdir()
    for _ in range(2):  # `up` after `down` finds its link
        link_expectations(stack, home)
    (home / "include" / "expectations" / "mine.yaml").write_text(SUITE)  # later: each window reads them anew
    assert "mine" in {suite.name for suite in load_suites(default_directory(stack))}


def test_without_any_the_product_s_own_count(tmp_path: Path) -> None:
    link_expectations(tmp_path, tmp_path / "nowhere")
    assert default_directory(tmp_path) == OWN

"""``airmirror report`` as a person types it: what bad input is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from airmirror.cli.main import app

LINES = "clusters = a, b\na.bootstrap.servers = one.invalid:9092\nb.bootstrap.servers = two.invalid:9092\na->b.enabled = true\n"


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--from", "yesterday"], 2, "no time of ISO 8601"),
        (["--from", "2026-11-02", "--to", "2026-11-01"], 2, "no moment lies between"),
        (["--from", "2026-11-02", "--to", "2026-11-02"], 2, "no moment lies between"),
        (["--flow", "a->c"], 2, "no flow 'a->c'"),
        ([], 1, "two.invalid"),
    ],
)
def test_bad_input_writes_nothing_and_says_what_is_wrong(
    options: list[str], status: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "mirror.properties").write_text(LINES)
    options += ["--config", str(tmp_path / "mirror.properties"), "--ledger", f"sqlite:///{tmp_path}/no.db"]
    failed = CliRunner().invoke(app, ["report", *options, "--write", str(tmp_path / "out")])
    assert failed.exit_code == status and said in failed.stderr, failed.output
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mirror.properties"]

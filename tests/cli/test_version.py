"""What every program answers: its version, and its help by the short name too."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from airmirror import __version__
from airmirror.cli.main import app


def test_the_version_is_told() -> None:
    told = CliRunner().invoke(app, ["--version"])
    assert told.exit_code == 0 and told.output == f"airmirror {__version__}\n"


@pytest.mark.parametrize("words", [(), ("status",), ("failover", "plan")])
def test_help_has_a_short_name(words: tuple[str, ...]) -> None:
    short, long = (CliRunner().invoke(app, [*words, name]) for name in ("-h", "--help"))
    assert short.exit_code == 0 and short.output == long.output and "Usage" in short.output

"""The place of a certificate's key while Python's ssl reads it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from airmirror.clusters.security.tls import _as_file


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has files that are memory")
def test_it_is_on_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with _as_file("planted") as file:
        assert Path(file).read_text() == "planted" == Path(file).read_text()
        assert not list(tmp_path.iterdir())
    assert not Path(file).exists()


def test_elsewhere_it_is_the_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delattr(os, "memfd_create", raising=False)
    with _as_file("planted") as file:
        assert Path(file).read_text() == "planted"
        assert [path.stat().st_mode & 0o077 for path in (Path(file), Path(file).parent)] == [0, 0]
    assert not list(tmp_path.iterdir())

"""The embedded stack's files are nobody else's to read."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cryptography.fernet import Fernet

from airmirror_local.airflow_stack import _settings
from airmirror_local.processes import start_process
from airmirror_local.spark_connect import _token


def test_files_of_its_processes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import os; os.mkdir('d'); open('f', 'w').write('secret')"]
    before = os.umask(0o022)
    try:
        process = start_process("writer", command, tmp_path / "log", directory=tmp_path)
        assert process.handle.wait(60) == 0
        process.release()
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o077 for name in ("f", "d")] == [0, 0]


def test_connections_are_encrypted_and_the_token_is_ones_own(tmp_path: Path) -> None:
    keys = {
        _settings(tmp_path, "http://x", 1, tmp_path, tmp_path / "p", 1)["AIRFLOW__CORE__FERNET_KEY"] for _ in range(2)
    }
    assert len(keys) == 2 and all(Fernet(key).encrypt(b"secret") for key in keys)
    token = _token(tmp_path / "token")
    assert len(token) >= 32 and _token(tmp_path / "token") == token
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600

"""Java 17 or 21 is found wherever it is, others are passed over, and none at all is said with what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from airmirror_local import java


def install(home: Path, version: str, status: int = 0) -> Path:
    """A ``java`` that reports a version on standard error, as Java does."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\nexit {status}\n")
    command.chmod(0o755)
    return command


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java but those of the test: JAVA_HOME in ``home``, PATH in ``path``, the system's in ``system``."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path' / 'bin'}:/bin")
    monkeypatch.setattr(java.shutil, "which", lambda name: _existing(tmp_path / "path" / "bin" / name))
    monkeypatch.setattr(java, "MACOS_JAVA_HOME", "/no/such/command")
    monkeypatch.setattr(java, "PLACES", ((str(tmp_path / "system"), "*/bin/java"),))


def _existing(command: Path) -> str | None:
    return str(command) if command.exists() else None


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.2"])
def test_java_home_comes_first(tmp_path: Path, version: str) -> None:
    install(tmp_path / "path", "17")
    expected = install(tmp_path / "home", version)
    assert java.find_java() == expected
    assert java.java_home() == tmp_path / "home"


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "25"])
def test_other_versions_are_passed_over(tmp_path: Path, version: str) -> None:
    install(tmp_path / "home", version)
    expected = install(tmp_path / "path", "17.0.1")
    assert java.find_java() == expected


def test_a_java_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    install(tmp_path / "path", "17", status=1)
    expected = install(tmp_path / "system" / "java-21", "21")
    assert java.find_java() == expected


def test_none_is_an_error_that_says_what_was_found_and_what_to_install(tmp_path: Path) -> None:
    old = install(tmp_path / "path", "11.0.2")
    with pytest.raises(java.JavaNotFound) as caught:
        java.find_java()
    message = str(caught.value)
    assert f"{old} (11)" in message
    assert "Java 17 or 21 is needed" in message
    assert "apt install openjdk-17-jre-headless" in message

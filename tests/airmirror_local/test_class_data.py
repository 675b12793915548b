"""An archive of classes is used when it is there, and never hinders a start."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from airmirror_local import class_data, prepare
from airmirror_local.brokers import QUICK_START, Broker, start_broker
from airmirror_local.class_data import archive_of, options
from airmirror_local.java import find_java


def test_an_archive_belongs_to_one_java_and_one_kafka(tmp_path: Path) -> None:
    java, other = tmp_path / "java", tmp_path / "other"
    for file in (java, other):
        file.touch()
    found = [archive_of(java, "4.2.0"), archive_of(java, "4.1.0"), archive_of(other, "4.2.0")]
    assert len(set(found)) == 3
    assert archive_of(java, "4.2.0") == found[0]


def test_without_an_archive_nothing_changes(tmp_path: Path) -> None:
    assert options(tmp_path / "none.jsa") == ()


def test_an_archive_that_does_not_fit_is_passed_over_in_silence(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    archive.write_bytes(b"of another Java" * 1000)
    command = [str(find_java()), *QUICK_START, *options(archive), "-version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout == "" and "warning" not in answer.stderr.lower()


def test_a_broker_uses_what_make_install_has_prepared(east: Broker) -> None:
    assert str(prepare.prepare()) in {each.path for each in east.process.handle.memory_maps()}
    assert "cds" not in east.log.read_text()


@pytest.mark.long
def test_an_archive_that_is_made_now_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "classes-4.2.0-00000000.jsa").write_bytes(b"of a Java that is gone")
    archive = prepare.prepare(local=tmp_path)
    assert prepare.prepare(local=tmp_path) == archive  # at once
    assert [file.name for file in tmp_path.iterdir()] == [archive.name]
    monkeypatch.setattr(class_data, "archive_of", lambda java, version: archive)
    broker = start_broker(tmp_path, "north")
    try:
        assert str(archive) in {each.path for each in broker.process.handle.memory_maps()}
        assert "cds" not in broker.log.read_text()
    finally:
        broker.kill()

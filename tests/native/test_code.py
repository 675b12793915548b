"""The loops are compiled once a machine, kept where nobody else can write, and loaded without numba."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from airmirror.native import code
from airmirror.native.code import CompilationFailed, loops
from airmirror.on_spark.library import build, digest
from airmirror.private import private_directory

A_SLOT = """
import sys
from airmirror.native import code
if sys.argv[1] == "load":
    code._compiled = None
assert code.loops().first_difference(0, 0, 0, 0, 0, 0, 0, 0, 0) == -1
assert "numba" not in sys.modules
print(code.__file__)
"""


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache of the user's own, and no other place to keep anything in."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", "/dev/null/nowhere")
    code._loops.cache_clear()
    yield tmp_path / "cache" / "airmirror"
    code._loops.cache_clear()


@pytest.fixture
def file_of_this_machine() -> Path:
    """The compiled loops, in the cache that all tests share."""
    loops()
    directory = private_directory()
    assert directory is not None
    return directory / f"{code._key()}.o"


@pytest.mark.seconds
@pytest.mark.parametrize("first", [pytest.param("compile", marks=pytest.mark.long), "load"])
def test_compiled_once_for_every_place_the_library_lies_in(
    file_of_this_machine: Path, cached: Path, tmp_path: Path, first: str
) -> None:
    """By the first place, or before it. Nothing of the current directory is imported for it."""
    if first == "load":
        cached.mkdir(0o700, parents=True)
        shutil.copy(file_of_this_machine, cached)
    (tmp_path / "numba.py").write_text("raise SystemExit('of the current directory')\n")
    (tmp_path / "session").mkdir()
    places = Path(code.__file__).parents[2], build(digest(), str(tmp_path / "session"))
    for place, how in zip(places, (first, "load"), strict=True):
        environment = os.environ | {"PYTHONPATH": str(place)}
        told = subprocess.run(
            [sys.executable, "-c", A_SLOT, how],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert told.returncode == 0, told.stderr
        assert told.stdout.startswith(str(place))
    assert cached.stat().st_mode & 0o777 == 0o700
    assert len(list(cached.iterdir())) == 1


@pytest.fixture
def code_of_this_machine(file_of_this_machine: Path) -> bytes:
    found = code._stored(file_of_this_machine)
    assert found is not None
    return found


@pytest.mark.seconds
def test_what_is_damaged_or_open_to_others_is_not_loaded(
    code_of_this_machine: bytes, cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[bytes] = []

    def once(directory: Path | None) -> bytes:
        compiled.append(code_of_this_machine)
        return code_of_this_machine

    def ask() -> int:
        code._loops.cache_clear()
        assert loops().first_difference(0, *[0] * 8) == -1
        return len(compiled)

    monkeypatch.setattr(code, "_compiled", once)
    assert [ask(), ask()] == [1, 1]
    [file] = cached.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    assert [ask(), ask()] == [2, 2]
    assert file.read_bytes() == whole
    cached.chmod(0o755)
    assert [ask(), ask()] == [3, 4]
    file.unlink()
    cached.rmdir()
    cached.symlink_to(cached.parent)
    assert ask() == 5


def test_threads_that_ask_at_once_are_given_the_same(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one each, the first thread's code is freed while it runs it: a process that copied with two slots was killed by it."""
    both = threading.Barrier(2)

    def slowly(_code: bytes) -> object:
        with suppress(threading.BrokenBarrierError):
            both.wait(0.3)  # until the other thread loads too, which it must not
        return object()

    monkeypatch.setattr(code, "_compiled", lambda directory: b"")
    monkeypatch.setattr(code, "_loaded", slowly)
    with ThreadPoolExecutor(2) as threads:
        one, other = threads.map(lambda _: loops(), range(2))
    assert one is other


@pytest.mark.parametrize("python", ["/bin/false", "/nowhere/python"])
def test_what_can_not_be_compiled_is_an_error(cached: Path, monkeypatch: pytest.MonkeyPatch, python: str) -> None:
    monkeypatch.setattr(sys, "executable", python)
    with pytest.raises(CompilationFailed, match=f"with {python}: .*requirements-executor.txt"):
        loops()
    assert not list(cached.iterdir())

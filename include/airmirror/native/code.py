"""The inner loops as functions of this process: compiled once a machine by another process, kept in the user's cache, loaded.

numba with its compiler would take 150 MB of a slot, for seconds in each; LLVM alone, which loads the code, takes 50 MB. The
cache is keyed by all that the code depends on, so every Spark session and every process of one user shares it.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from pkgutil import get_data
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from airmirror.errors import AirmirrorError
from airmirror.private import private_directory

log = logging.getLogger(__name__)

# Of each loop: b an address of bytes, N one of int64 numbers, n a number. All return a number.
ARGUMENTS = {
    "index": "bnNNNNNNNnnNNNN",
    "write": "bNNNnnbnN",
    "first_difference": "nbNNNbNNN",
    "upgrade": "bnnnnnb",
    "find": "bnNNnnNNnnnN",
    "ended": "bnnNnN",
}
SOURCES = ("loops.py", "scanning.py", "checksum.py", "layout.py", "compiler.py", "code.py")
COMPILE_SECONDS = 600
_TYPES = {"b": ctypes.c_void_p, "N": ctypes.c_void_p, "n": ctypes.c_int64}
_DIGEST_SIZE = hashlib.sha256().digest_size
_first = threading.Lock()


class CompilationFailed(AirmirrorError):
    """The inner loops can't be compiled on this machine."""

    python: str
    reason: str
    says = (
        "the loops over records can't be compiled with {0.python}: {0.reason}; install the numba and llvmlite versions of "
        "requirements-executor.txt"
    )


@dataclass(frozen=True)
class Loops:
    """The functions of ``loops`` and ``scanning``, called with addresses; ``engine`` holds their code."""

    index: Callable[..., int]
    write: Callable[..., int]
    first_difference: Callable[..., int]
    upgrade: Callable[..., int]
    find: Callable[..., int]
    ended: Callable[..., int]
    engine: llvm.ExecutionEngine


def loops() -> Loops:
    """Load the loops, compiled now where they are not in the cache. Raises CompilationFailed.

    Threads that ask at once are given the same: a second copy would free the code that a thread is running.
    """
    with _first:
        return _loops()


@cache
def _loops() -> Loops:
    directory = private_directory()
    file = directory / f"{_key()}.o" if directory else None
    code = _stored(file) if file else None
    if code is None:
        code = _compiled(directory)
        if file:
            _store(file, code)
    return _loaded(code)


def address(array: np.ndarray[Any, Any]) -> int:
    """Return the address of an array of one dimension, without gaps; the array must outlive the call that is given it."""
    return int(array.__array_interface__["data"][0])


def target_machine() -> llvm.TargetMachine:
    """This machine, with all that its processor can do."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        codemodel="jitdefault",
        jit=True,
    )


def _loaded(code: bytes) -> Loops:
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    functions = {
        name: ctypes.CFUNCTYPE(ctypes.c_int64, *(_TYPES[kind] for kind in arguments))(engine.get_function_address(name))
        for name, arguments in ARGUMENTS.items()
    }
    return Loops(**functions, engine=engine)


def _compiled(directory: Path | None) -> bytes:
    """Compile in another process. Nothing is imported from the directory that this one happens to stand in."""
    log.info("compiling the loops over records")
    settings = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    # The library may be a zip that Spark has added.
    settings["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))
    command = [sys.executable, "-P", "-m", "airmirror.native.compiler"]
    try:
        done = subprocess.run(
            command,
            env=settings,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=COMPILE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompilationFailed(sys.executable, str(error)) from error
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise CompilationFailed(sys.executable, lines[-1] if lines else f"its process ended with {done.returncode}")
    return done.stdout


def _key() -> str:
    """Of the sources, and of what makes code of them: the same for every place that the library lies in."""
    about = [
        *(get_data(__package__, name) or b"" for name in SOURCES),
        *(metadata.version(name).encode() for name in ("numba", "llvmlite")),
        repr(sys.version_info[:2]).encode(),
        llvm.get_process_triple().encode(),
        llvm.get_host_cpu_name().encode(),
        llvm.get_host_cpu_features().flatten().encode(),
    ]
    return hashlib.sha256(b"\0".join(about)).hexdigest()[:32]


def _stored(file: Path) -> bytes | None:
    """Return the stored bytes if they are whole: a digest comes before them."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    digest, code = content[:_DIGEST_SIZE], content[_DIGEST_SIZE:]
    return code if hashlib.sha256(code).digest() == digest else None


def _store(file: Path, code: bytes) -> None:
    """Put it there at once: another process sees the whole file or none."""
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        draft.write_bytes(hashlib.sha256(code).digest() + code)
        draft.replace(file)
    except OSError as error:
        log.warning("the compiled loops can't be kept in %s: %s", file.parent, error)
        with contextlib.suppress(OSError):
            draft.unlink()

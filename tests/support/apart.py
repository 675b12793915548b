"""Services of one machine as if each had a machine of its own: a Unix user with a home that is closed to the others."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

FIRST_USER = 64_100  # numbers that no account has
# An interpreter below a closed directory (root's home) is put where each service finds it, in a place that only it sees.
REACHED = """
umask 022
mount --bind "$1" "$2"
mount -t tmpfs -o mode=755 none "$3"
mkdir -p "$1"
mount --move "$2" "$1"
umask 077
shift 3
exec "$@"
"""


@dataclass(frozen=True)
class Users:
    """Where the homes lie: a directory that every user may pass through."""

    directory: Path

    def home(self, service: str) -> Path:
        return self.directory / service.lower().replace(" ", "-")

    def number(self, service: str) -> int:
        return self.home(service).stat().st_uid

    def add(self, service: str, files: Mapping[str, bytes]) -> None:
        """Give a service the next user, and a home with these files, which nobody else may open."""
        home, number = self.home(service), FIRST_USER + len(list(self.directory.iterdir()))
        home.mkdir(mode=0o700)
        for name, content in files.items():
            (home / name).write_bytes(content)
            os.chown(home / name, number, number)
        os.chown(home, number, number)

    def command(self, service: str) -> Sequence[str]:
        """What starts a service's own command as its user."""
        number = self.number(service)
        as_user = ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups"]
        python = Path(sys.base_prefix)
        closed = next((each for each in reversed(python.parents) if not each.stat().st_mode & stat.S_IXOTH), None)
        if closed is None:
            return as_user
        spare = self.home(service) / "python"
        spare.mkdir()
        return ["unshare", "--mount", "sh", "-ec", REACHED, "sh", str(python), str(spare), str(closed), *as_user]

    def environment(self, service: str) -> dict[str, str]:
        """The environment by which programs find a home; a temporary directory and a cache are in it too."""
        home = str(self.home(service))
        of_user = {"LOGNAME": service.replace(" ", "-"), "USER": service.replace(" ", "-")}
        return {"HOME": home, "TMPDIR": home, "XDG_CACHE_HOME": home} | of_user


def users(directory: Path) -> Users:
    """Homes in a directory. Skips the test where processes can't be given users."""
    if not sys.platform.startswith("linux") or os.geteuid():
        pytest.skip("each service is given a Unix user of its own: run it as root on Linux (sudo)")
    if missing := [name for name in ("unshare", "setpriv", "mount") if shutil.which(name) is None]:
        pytest.skip(f"services are started by {missing[0]}: apt install util-linux")
    directory.mkdir()
    directory.chmod(0o755)
    return Users(directory)

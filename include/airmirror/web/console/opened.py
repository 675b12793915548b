"""The console's ledger, opened once a process: an engine has compiled its queries by then, and a connection is there."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from sqlalchemy.engine import make_url

from airmirror.ledger import Ledger
from airmirror.ledger.schema import make_or_check

File = tuple[int, int] | None  # device and inode of SQLite's file


class NoLedger(Exception):
    """There is no file of that name."""


def opened(url: str) -> Ledger:
    """Return the ledger, at its version. Raises NoLedger, LedgerUnavailable, LedgerOfOtherVersion.

    A page does not make one: that is the first window's work.
    """
    ledger = _open(url, _file(url))
    make_or_check(ledger.engine)  # another process may have made it again
    return ledger


def _file(url: str) -> File:
    """SQLite's file as it is now: one that was deleted and made again is another one."""
    place = make_url(url)
    if place.get_backend_name() != "sqlite":
        return None
    try:
        found = Path(place.database or "").stat()
    except OSError as error:
        raise NoLedger from error
    return found.st_dev, found.st_ino


@lru_cache(maxsize=1)  # the connections of an earlier one are closed with it
def _open(url: str, _file: File) -> Ledger:
    return Ledger(url)

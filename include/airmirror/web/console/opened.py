"""What the console opens: the flows of the configuration, as its file is now, and the ledger, once a process: an engine has
compiled its queries by then, and a connection is there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sqlalchemy.engine import make_url

from airmirror.config import Configuration, Flow
from airmirror.ledger import Ledger
from airmirror.ledger.schema import make_or_check
from airmirror.on_airflow.dags.all_dags import OF_A_FLOW
from airmirror.on_airflow.dags.common import id_of
from airmirror.topics.sound import sound


@dataclass(frozen=True)
class Flows:
    """The enabled flows by the id of their DAG ``replicate.…``; ``owners``: of each of their DAGs that one's.

    ``broken``: the names of flows that something is wrong with, which have no DAGs.
    """

    configuration: Configuration
    by_dag: dict[str, Flow]
    owners: dict[str, str]
    broken: tuple[str, ...]


def flows_of(config: Path) -> Flows:
    """Read the flows; a file that did not change is read once. Raises ConfigurationError, OSError."""
    found = config.stat()
    return _read(config, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=4)
def _read(config: Path, _changed: int, _size: int) -> Flows:
    found = sound(config)
    by_dag = {id_of("replicate", flow): flow for flow in found.configuration.enabled}
    owners = {id_of(kind, flow): name for name, flow in by_dag.items() for kind in OF_A_FLOW}
    return Flows(found.configuration, by_dag, owners, tuple(sorted(found.broken)))


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


@lru_cache(maxsize=1)
def _open(url: str, _file: File) -> Ledger:
    ledger = Ledger(url)
    ledger.close()  # the engine is the process's: its connections may be those to the file that was there before
    return ledger

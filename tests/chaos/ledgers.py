"""Faults of the ledger beside running windows: rebuilt from Kafka, or restored from a backup that is older."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import Opened, read_again
from chaos.plan import Fault


@dataclass(frozen=True)
class LedgerFaults:
    """A seed's ledger: an SQLite ``file``, and how its flow is opened."""

    file: Path
    open: Callable[[], Opened]

    def befall(self, fault: Fault) -> str:
        """Rebuild it again and again for a while, or put back what it was before that."""
        if fault.kind == "rebuild_ledger":
            return self._rebuild(fault.seconds)
        backup = self.file.with_suffix(".backup")
        _copy(self.file, backup)
        time.sleep(fault.seconds)  # meanwhile windows continue
        _copy(backup, self.file)
        return f"restored as it was {fault.seconds} s before"

    def _rebuild(self, seconds: float) -> str:
        until, count, refused = time.monotonic() + seconds, 0, 0
        while time.monotonic() < until:
            with self.open() as opened:
                try:
                    read_again(opened)
                    count += 1
                except AirmirrorError as error:  # a window holds the lease, or another fault keeps its cluster away
                    if not error.transient:
                        raise
                    refused += 1
                    time.sleep(0.1)
        return f"rebuilt {count} times, refused {refused} times"


def _copy(origin: Path, copy: Path) -> None:
    """A consistent copy, beside whoever else writes."""
    with sqlite3.connect(origin, timeout=60) as source, sqlite3.connect(copy, timeout=60) as target:
        source.backup(target)
    source.close()
    target.close()

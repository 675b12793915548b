"""Renews a window's lease while the window runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from airmirror.errors import AirmirrorError
from airmirror.windows.alongside import BackgroundThread
from airmirror.wire.mappings import Lease, LeaseEvent

log = logging.getLogger(__name__)

RENEW_SECONDS = 10.0


class Renewal(BackgroundThread):
    """Renews a lease every ten seconds in a thread of its own while its window runs; a context manager."""

    def __init__(self, lease: Lease, append: Callable[[Lease], object]) -> None:
        super().__init__(f"lease {lease.window}")
        self.lease = lease
        self._append = append

    def end(self) -> None:
        """Renew the lease, and tell slots that follow the log to end; each later renewal says so too."""
        self.lease = replace(self.lease, event=LeaseEvent.ENDING)
        self._append(self.lease)

    def grow(self, slots: int) -> None:
        """Renew the lease for more slots, from now on."""
        self.lease = replace(self.lease, slots=slots)
        self._append(self.lease)

    def _run(self) -> None:
        while not self._ended.wait(RENEW_SECONDS):
            try:
                self._append(self.lease)
            except AirmirrorError as error:  # the next renewal may come in time; the fence keeps the data right
                log.warning("the lease of window %s was not renewed: %s", self.lease.window, error)

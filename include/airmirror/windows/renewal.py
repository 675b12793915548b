"""Renews a window's claim while the window runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from airmirror.errors import AirmirrorError
from airmirror.windows.alongside import BackgroundThread
from airmirror.wire.segments import Claim, ClaimEvent

log = logging.getLogger(__name__)

RENEW_SECONDS = 10.0


class Renewal(BackgroundThread):
    """Renews a claim every ten seconds in a thread of its own while its window runs; a context manager."""

    def __init__(self, claim: Claim, append: Callable[[Claim], object]) -> None:
        super().__init__(f"claim {claim.window}")
        self.claim = claim
        self._append = append

    def end(self) -> None:
        """Renew the claim, and tell slots that follow the log to end; each later renewal says so too."""
        self.claim = replace(self.claim, event=ClaimEvent.ENDING)
        self._append(self.claim)

    def grow(self, slots: int) -> None:
        """Renew the claim for more slots, from now on."""
        self.claim = replace(self.claim, slots=slots)
        self._append(self.claim)

    def _run(self) -> None:
        while not self._ended.wait(RENEW_SECONDS):
            try:
                self._append(self.claim)
            except AirmirrorError as error:  # the next renewal may come in time; the fence keeps the data right
                log.warning("the claim of window %s was not renewed: %s", self.claim.window, error)

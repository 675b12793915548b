"""The rate limit of a caller, counted in this process: each worker of the API server counts its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

LIMIT = 60  # calls a minute of one caller
_MINUTE = 60.0


@dataclass
class RateLimit:
    """At most ``calls`` a minute for every caller. Thread-safe."""

    calls: int = LIMIT
    clock: Callable[[], float] = time.monotonic
    _begun: dict[str, list[float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, caller: str) -> float:
        """Count a call; 0, or in how many seconds the next one is allowed."""
        with self._lock:
            now = self.clock()
            begun = [at for at in self._begun.get(caller, ()) if now - at < _MINUTE]
            self._begun[caller] = begun
            if len(begun) >= self.calls:
                return begun[0] + _MINUTE - now
            begun.append(now)
            return 0.0

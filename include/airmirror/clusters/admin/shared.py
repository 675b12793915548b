"""Clients of librdkafka that calls share: making one (threads, connections, a log-in) takes longer than most of what it is asked.

A client is shared for a minute at most, eight of them are kept, and none is used again once anything has gone wrong with it:
the next call starts with a new one, without its complaints and without the growing pauses in which librdkafka would try again.
"""

from __future__ import annotations

import gc
import hmac
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from confluent_kafka import KafkaError

SHARED_SECONDS = 60.0
MOST = 8

_SALT = os.urandom(32)


@dataclass(frozen=True, eq=False)
class SharedClient:
    """A client (AdminClient, Producer), what its connections have complained of, and when it was made."""

    client: Any
    complaints: list[KafkaError]
    made: float = field(default_factory=time.monotonic)

    @property
    def is_good(self) -> bool:
        """Return whether it may be used again: it is young, and nothing has gone wrong with it."""
        if time.monotonic() - self.made > SHARED_SECONDS:
            return False
        self.client.poll(0)
        return not self.complaints


_lock = Lock()
_clients: OrderedDict[bytes, SharedClient] = OrderedDict()


def shared(settings: Mapping[str, Any], make: Callable[[Callable[[KafkaError], None]], Any]) -> SharedClient:
    """Return this process's client of these settings (which no client of another kind has), else the one that ``make`` makes with
    what is to hear its complaints."""
    key = _key(settings)
    with _lock:
        for other in [other for other, each in _clients.items() if not each.is_good]:
            del _clients[other]  # with the secrets that it was made of
        found = _clients.get(key)
        if found is None:
            complaints: list[KafkaError] = []
            _clients[key] = found = SharedClient(make(complaints.append), complaints)
        _clients.move_to_end(key)
        while len(_clients) > MOST:
            _clients.popitem(last=False)
        return found


def drop(client: object) -> None:
    """Let no further call use a client."""
    with _lock:
        for key in [key for key, each in _clients.items() if each.client is client]:
            del _clients[key]


def _key(settings: Mapping[str, Any]) -> bytes:
    """What tells settings from others, without telling them; a file that was written again is another."""
    said = [(name, value, _written(name, value)) for name, value in sorted(settings.items())]
    return hmac.digest(_SALT, repr(said).encode(), "sha256")


def _written(name: str, value: Any) -> tuple[int, ...]:
    if not name.endswith(".location"):
        return ()
    try:
        found = Path(value).stat()
    except OSError:  # the client tells
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _before_fork() -> None:
    """A child would get clients whose threads stay behind: none may be there, and none be made meanwhile."""
    _lock.acquire()
    _clients.clear()


def _in_child() -> None:
    """The child collects no client that was garbage before the fork: it would wait for threads, and find those of its own."""
    gc.freeze()
    _lock.release()


os.register_at_fork(before=_before_fork, after_in_parent=_lock.release, after_in_child=_in_child)

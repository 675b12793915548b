"""Bearer tokens of programs that call the app: each is the password of an Airflow connection of its own.

Airflow's own tokens live for a day, which Alertmanager, Grafana and Prometheus can't renew. A guess costs a comparison and
no look-up: connections are asked for once in thirty seconds. (Addresses are not counted: behind a proxy or a load balancer a
guesser would shut out everybody else.) A caller's calls a minute are limited: each worker of the API server counts its own.
"""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from airflow.models.connection import Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from fastapi import Header, HTTPException

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


KEPT_SECONDS = 30.0  # so long a token that was changed still counts


def caller_of(conn_ids: Callable[[], Sequence[str]], limit: RateLimit) -> Callable[..., str]:
    """A dependency: the connection whose token the caller has sent; else 401, or 429 where it calls too often."""
    tokens = ConnectionTokens(_token)

    def caller(authorization: Annotated[str, Header()] = "") -> str:
        scheme, _, sent = authorization.partition(" ")
        if scheme.lower() != "bearer" or not sent.strip():
            raise _unauthorized()
        found = ""
        for conn_id in conn_ids():  # all of them, so that the time tells nothing
            token = tokens.of(conn_id)
            if hmac.compare_digest(sent.strip().encode(), token.encode()) and token:
                found = conn_id
        if not found:
            raise _unauthorized()
        if wait := limit.take(found):
            said = f"more than {limit.calls} calls a minute, as this worker of the API server counts them"
            raise HTTPException(429, said, {"Retry-After": str(int(wait) + 1)})
        return found

    return caller


@dataclass
class ConnectionTokens:
    """The tokens of connections, asked for again when they are older than thirty seconds. Thread-safe."""

    ask: Callable[[str], str]
    clock: Callable[[], float] = time.monotonic
    _kept: dict[str, tuple[float, str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, conn_id: str) -> str:
        with self._lock:
            at, token = self._kept.get(conn_id, (float("-inf"), ""))
            if self.clock() - at >= KEPT_SECONDS:
                token = self.ask(conn_id)
                self._kept[conn_id] = (self.clock(), token)
            return token


def _unauthorized() -> HTTPException:
    return HTTPException(401, "a bearer token is needed", {"WWW-Authenticate": "Bearer"})


def _token(conn_id: str) -> str:
    """The password of a connection; empty, which can't be sent, where there is none."""
    try:
        return Connection.get_connection_from_secrets(conn_id).password or ""
    except AirflowNotFoundException:
        return ""

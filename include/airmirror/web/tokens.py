"""Bearer tokens of programs that call the app: each is the password of an Airflow connection of its own.

Airflow's own tokens live for a day, which Alertmanager, Grafana and Prometheus can't renew.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from typing import Annotated

from airflow.models.connection import Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from fastapi import Header, HTTPException

from airmirror.web.rates import RateLimit


def caller_of(conn_ids: Callable[[], Sequence[str]], limit: RateLimit) -> Callable[..., str]:
    """A dependency: the connection whose token the caller has sent; else 401, or 429 where it calls too often."""

    def caller(authorization: Annotated[str, Header()] = "") -> str:
        scheme, _, sent = authorization.partition(" ")
        found = ""
        for conn_id in conn_ids():  # all of them, so that the time tells nothing
            token = _token(conn_id)
            if hmac.compare_digest(sent.strip().encode(), token.encode()) and token and scheme.lower() == "bearer":
                found = conn_id
        if not found:
            raise HTTPException(401, "a bearer token is needed", {"WWW-Authenticate": "Bearer"})
        wait = limit.take(found)
        if wait:
            raise HTTPException(429, f"more than {limit.calls} calls a minute", {"Retry-After": str(int(wait) + 1)})
        return found

    return caller


def _token(conn_id: str) -> str:
    """The password of a connection; empty, which nobody can send, where there is none."""
    try:
        return Connection.get_connection_from_secrets(conn_id).password or ""
    except AirflowNotFoundException:
        return ""

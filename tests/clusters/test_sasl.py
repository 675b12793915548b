"""The questions of a false broker to a client that logs in with SCRAM."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.clusters.protocol.sasl import AuthenticationFailed, authenticate, exchanges_of
from airmirror.clusters.security.model import Login


class Broker:
    """One end of a connection: it asks for a number of iterations, and keeps what it is shown."""

    cluster, broker = "east", "one:9092"

    def __init__(self, iterations: str) -> None:
        self.iterations, self.shown = iterations, [b""]

    def version(self, *_: object) -> int:
        return 1

    def request(self, request: Any, version: int) -> Any:
        if not hasattr(request, "auth_bytes"):
            return SimpleNamespace(error_code=0, mechanisms=[])
        self.shown.append(request.auth_bytes)
        nonce = request.auth_bytes.partition(b",r=")[2]
        salt = base64.b64encode(b"salt")
        asked = b"r=%sX,s=%s,i=%s" % (nonce, salt, self.iterations.encode())
        answer = asked if len(self.shown) == 2 else b"v=" + base64.b64encode(bytes(32))
        return SimpleNamespace(error_code=0, error_message=None, auth_bytes=answer, session_lifetime_ms=0)


@pytest.mark.parametrize(
    "iterations",
    ["1", "0", "-5", "4095", "+1", " 1", "4096,i=1", "\u0661", "\u00a01", "\uff11", "0\u0665000", "99999999", "1_0000"],
)
def test_few_iterations_are_refused_before_anything_is_proved(iterations: str) -> None:
    broker: Any = Broker(iterations)
    with pytest.raises(AuthenticationFailed, match="iterations") as caught:
        authenticate(broker, "SCRAM-SHA-256", exchanges_of("east", Login("SCRAM-SHA-256", "user", "planted")))
    assert len(broker.shown) == 2 and "planted" not in str(caught.value)


def test_as_many_as_kafka_has_are_done() -> None:
    broker: Any = Broker("4096")
    with pytest.raises(AuthenticationFailed, match="does not prove"):  # its signature is wrong
        authenticate(broker, "SCRAM-SHA-256", exchanges_of("east", Login("SCRAM-SHA-256", "user", "planted")))
    assert len(broker.shown) == 3

"""Logging in over SASL, with kafka-python's mechanisms: at the beginning of a connection and before its session ends.

SaslHandshake 1, then SaslAuthenticate as often as the mechanism wants (KIP-152); from version 1 on the broker says how long
the session lasts (KIP-368).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from airmirror.clusters.protocol.connection import Connection
from airmirror.clusters.protocol.errors import error_name
from airmirror.clusters.security.model import OAUTHBEARER, SCRAM, Login
from airmirror.clusters.security.tokens import Tokens
from airmirror.errors import AirmirrorError

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
UNSUPPORTED_MECHANISM, ILLEGAL_STATE, AUTHENTICATION_FAILED = 33, 34, 58
REFUSED = frozenset({UNSUPPORTED_MECHANISM, ILLEGAL_STATE, AUTHENTICATION_FAILED})
SHARE_OF_SESSION = 0.85  # as Kafka's own clients: logged in again after 85 % of the session at the earliest
FEWEST_ITERATIONS = 4096  # ScramMechanism.minIterations, which Kafka's own clients insist on
_ITERATIONS = re.compile(rb"i=[1-9][0-9]{3,6}")  # as RFC 5802 has it; kafka-python takes digits of every alphabet

log = logging.getLogger(__name__)


class AuthenticationFailed(AirmirrorError):
    """A broker that does not let this user in, or not any more."""

    says = (
        "cluster {0.cluster!r}: broker {0.broker} refuses the log-in with {0.mechanism}: {0.reason}; set "
        "{0.cluster}.sasl.mechanism and {0.cluster}.sasl.jaas.config (or its Airflow connection) to what the "
        "cluster knows, or give the user its credentials back (kafka-configs.sh): the next window continues from the "
        "progress that is committed"
    )
    cluster: str
    broker: str
    mechanism: str
    reason: str


class AuthenticationInterrupted(AuthenticationFailed, transient=True):
    """A broker that could not say whether it lets this user in."""

    says = "cluster {0.cluster!r}: broker {0.broker} could not judge the log-in with {0.mechanism}: {0.reason}"


def exchanges_of(alias: str, login: Login) -> Callable[[], Any]:
    """Return what begins an exchange of the mechanism that the settings name, with an object of kafka-python's."""
    if login.mechanism == OAUTHBEARER:
        tokens = Tokens(alias, login)
        return lambda: _bearer(tokens.token())
    user = login.username
    if login.mechanism in SCRAM:  # RFC 5802, 5.1: what kafka-python leaves to its caller
        user = user.replace("=", "=3D").replace(",", "=2C")

    def begin() -> Any:
        from kafka.net.sasl import get_sasl_mechanism

        mechanism = get_sasl_mechanism(login.mechanism)
        return mechanism(sasl_mechanism=login.mechanism, sasl_plain_username=user, sasl_plain_password=login.password)

    return begin


def authenticate(connection: Connection, mechanism: str, begin: Callable[[], Any]) -> float | None:
    """Log in; the seconds after which to do it again, or None for never.

    Raises AuthenticationFailed, AuthenticationInterrupted, and what the connection and the tokens raise.
    """
    handshake = connection.request(
        SaslHandshakeRequest(mechanism=mechanism), connection.version(SASL_HANDSHAKE, 1, 1, "SaslHandshake")
    )
    if handshake.error_code == UNSUPPORTED_MECHANISM:
        offered = ", ".join(handshake.mechanisms) or "none"
        raise AuthenticationFailed(connection.cluster, connection.broker, mechanism, f"it offers {offered}")
    _check(connection, mechanism, handshake.error_code, None)
    version = connection.version(SASL_AUTHENTICATE, 0, 2, "SaslAuthenticate")
    exchange = begin()
    lifetime = 0
    while not exchange.is_done():
        answer = connection.request(SaslAuthenticateRequest(auth_bytes=exchange.auth_bytes()), version)
        _check(connection, mechanism, answer.error_code, answer.error_message)
        if mechanism in SCRAM:
            _check_iterations(connection, mechanism, bytes(answer.auth_bytes))
        try:
            exchange.receive(bytes(answer.auth_bytes))
        except (ValueError, LookupError) as error:  # binascii's and Unicode's are ValueErrors
            reason = "it does not prove that it knows the user's credentials, or answers nonsense"
            raise AuthenticationFailed(connection.cluster, connection.broker, mechanism, reason) from error
        lifetime = answer.session_lifetime_ms if version >= 1 else 0
    if not exchange.is_authenticated():
        raise AuthenticationFailed(
            connection.cluster, connection.broker, mechanism, "it does not accept the credentials"
        )
    return lifetime / 1000 * SHARE_OF_SESSION if lifetime > 0 else None


def _check_iterations(connection: Connection, mechanism: str, answer: bytes) -> None:
    """A false broker that asks for few would learn what tells the password by trying."""
    asked = [part for part in answer.split(b",") if part.startswith(b"i=")]
    if len(asked) > 1 or not all(_ITERATIONS.fullmatch(each) and int(each[2:]) >= FEWEST_ITERATIONS for each in asked):
        reason = f"it asks for fewer than {FEWEST_ITERATIONS:,} iterations, or for no such number, which no broker of Kafka does"
        raise AuthenticationFailed(connection.cluster, connection.broker, mechanism, reason)


def _check(connection: Connection, mechanism: str, error: int, message: str | None) -> None:
    if error:
        kind = AuthenticationFailed if error in REFUSED else AuthenticationInterrupted
        raise kind(connection.cluster, connection.broker, mechanism, message or error_name(error))


def _bearer(token: str) -> Any:
    from kafka.net.sasl.oauth import AbstractTokenProvider, SaslMechanismOAuth

    class Given(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return token

    return SaslMechanismOAuth(sasl_oauth_token_provider=Given())

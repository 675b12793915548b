"""A cluster with a listener for every way to log in, and the client settings for each."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

from confluent_kafka.admin import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from airmirror_local.brokers import IMPATIENT, QUICK_START, Broker, start_broker
from airmirror_local.certificates import Authority, authority
from airmirror_local.ports import LOOPBACK
from support.topics import SECONDS, admin

USER, PASSWORD = "mirror,=user", "pla nted-$ecret\"7;'\\"
SECRET = "nted-$ecret"  # what of the password is the same however it is quoted
PLAIN_USER = "mirror"
SESSION_MS = 2400
LISTENERS = {
    "MUTUAL": "SSL",
    "OPEN": "SASL_PLAINTEXT",
    "GUARDED": "SASL_SSL",
    "EXPIRING": "SASL_SSL",  # whose sessions last SESSION_MS
}
_MODULE = "org.apache.kafka.common.security"
_MECHANISMS = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)


@dataclass(frozen=True)
class Secured:
    """A cluster of one node; ``broker.bootstrap`` is its plaintext listener, for the tests themselves."""

    broker: Broker
    authority: Authority
    client: Authority  # the certificate that the listener MUTUAL asks for
    trust: Path  # a PEM truststore

    def access(self, listener: str, mechanism: str = "", **settings: str) -> dict[str, str]:
        """The client settings for a listener; ``settings`` (``_`` for ``.``) go over them."""
        protocol = LISTENERS[listener]
        found = {"bootstrap.servers": self.broker.listeners[listener], "security.protocol": protocol}
        if protocol.endswith("SSL"):
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.trust)}
        if mechanism:
            found["sasl.mechanism"] = mechanism
            found["sasl.jaas.config"] = jaas(mechanism)
        return found | {name.replace("_", "."): value for name, value in settings.items()}


def jaas(mechanism: str, password: str = PASSWORD) -> str:
    """The JAAS configuration of the user of a mechanism."""
    user = PLAIN_USER if mechanism == "PLAIN" else USER
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    if mechanism == "OAUTHBEARER":
        return f"{_MODULE}.oauthbearer.OAuthBearerLoginModule required clientId=airmirror clientSecret={_quoted(password)};"
    return f"{_MODULE}.{module} required username={_quoted(user)} password={_quoted(password)};"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def give_credentials(broker: Broker, password: str = PASSWORD) -> None:
    """The SCRAM user exists with this password when the call returns."""
    _alter(
        broker,
        [
            UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 4096), password.encode())
            for mechanism in _MECHANISMS
        ],
    )


def take_credentials(broker: Broker) -> None:
    """The SCRAM user exists no more when the call returns."""
    _alter(broker, [UserScramCredentialDeletion(USER, mechanism) for mechanism in _MECHANISMS])


def _alter(broker: Broker, alterations: Sequence[UserScramCredentialUpsertion | UserScramCredentialDeletion]) -> None:
    client = admin(broker)
    for alteration in alterations:  # one a user and request
        for future in client.alter_user_scram_credentials([alteration]).values():
            future.result(SECONDS)


def unsecured_token(seconds: int = 300, subject: str = USER) -> str:
    """A JSON Web Token without a signature, which a broker takes that is told of no other validator (RFC 7519, 6)."""
    now = int(time.time())
    parts = ({"alg": "none"}, {"sub": subject, "iat": now, "exp": now + seconds, "scope": "kafka"})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join((*encoded, ""))


@contextmanager
def token_endpoint() -> Iterator[str]:
    """The address of a token endpoint, which gives a token to the client of ``jaas("OAUTHBEARER")`` only."""
    wanted = "Basic " + base64.b64encode(f"airmirror:{PASSWORD}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            known = self.headers["Authorization"] == wanted and form["grant_type"] == ["client_credentials"]
            answer = {"access_token": unsecured_token(), "expires_in": 300, "token_type": "Bearer"} if known else {}
            body = json.dumps(answer).encode()
            self.send_response(200 if known else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the test's output is not for requests."""

    with ThreadingHTTPServer((LOOPBACK, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://{LOOPBACK}:{server.server_port}/token"
        finally:
            server.shutdown()
            thread.join()


def start_secured(directory: Path, name: str, *, java_options: Sequence[str] = QUICK_START) -> Secured:
    """Start the cluster; its SCRAM user is there. (Java's quick compiler does 10 MB/s of AES.)"""
    signs = authority()
    own = signs.signs("broker", LOOPBACK)
    home = directory / f"{name}-certificates"
    home.mkdir(parents=True)
    trust, keystore = home / "authority.pem", home / "broker.pem"
    trust.write_text(signs.pem)
    keystore.write_text(own.key_pem() + own.pem)
    broker = start_broker(
        directory, name, IMPATIENT | _properties(trust, keystore), java_options=java_options, listeners=LISTENERS
    )
    try:
        give_credentials(broker)
    except BaseException:
        broker.kill()
        raise
    return Secured(broker, signs, signs.signs("mirror"), trust)


def _properties(trust: Path, keystore: Path) -> Mapping[str, str]:
    found = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trust),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "listener.name.mutual.ssl.client.auth": "required",
    }
    for listener in ("open", "guarded", "expiring"):
        prefix = f"listener.name.{listener}"
        found[f"{prefix}.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
        known = f"{_MODULE}.plain.PlainLoginModule required user_{PLAIN_USER}={_quoted(PASSWORD)};"
        found[f"{prefix}.plain.sasl.jaas.config"] = known.replace("\\", "\\\\")  # in a properties file
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            found[f"{prefix}.{mechanism}.sasl.jaas.config"] = f"{_MODULE}.scram.ScramLoginModule required;"
        found[f"{prefix}.oauthbearer.sasl.jaas.config"] = (
            f"{_MODULE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=broker;"
        )
    for mechanism in ("plain", "scram-sha-256", "scram-sha-512", "oauthbearer"):
        found[f"listener.name.expiring.{mechanism}.connections.max.reauth.ms"] = str(SESSION_MS)
    return found

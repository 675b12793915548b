"""Client settings by Java's names turned into librdkafka's, for confluent-kafka.

What only Java knows (serializers, interceptors, buffers) is dropped with a debug line; what can't be dropped without
changing who is trusted or how to log in (a JCEKS store, a login class) is an error.
"""

from __future__ import annotations

import logging
import re

from airmirror.clusters.security.model import OAUTHBEARER, Login, Security, Store
from airmirror.clusters.security.settings import security_of
from airmirror.clusters.security.stores import identity, kind_of, trusted
from airmirror.config import Cluster
from airmirror.config.keys.clients import LIBRDKAFKA, LOG_IN, ROLES

log = logging.getLogger(__name__)


_RENAMED = {
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
RANGES = {
    "batch.size": (1, 2**31 - 1),
    "connections.max.idle.ms": (0, 2**31 - 1),
    "delivery.timeout.ms": (0, 2**31 - 1),
    "linger.ms": (0, 900_000),
    "message.max.bytes": (1_000, 1_000_000_000),
    "metadata.max.age.ms": (1, 86_400_000),
    "reconnect.backoff.max.ms": (100, 3_600_000),  # no less than librdkafka's own reconnect.backoff.ms,
    "reconnect.backoff.ms": (0, 10_000),  # and no more than its own maximum: it refuses what contradicts the other
    "retry.backoff.max.ms": (1, 300_000),
    "retry.backoff.ms": (1, 300_000),
    "socket.connection.setup.timeout.ms": (1_000, 2**31 - 1),
    "socket.receive.buffer.bytes": (0, 100_000_000),
    "socket.send.buffer.bytes": (0, 100_000_000),
    "socket.timeout.ms": (10, 300_000),
}
"""What librdkafka takes of settings that only tune; beyond it Java's, -1 among them, count as the nearest of these."""


def librdkafka_config(cluster: Cluster, role: str) -> dict[str, str]:
    """librdkafka's settings for one kind of client (admin, consumer, producer). Raises UnsupportedClientSetting."""
    java = cluster.client(role)
    settings: dict[str, str] = {}
    for name, value in java.items():
        if name in LIBRDKAFKA & ROLES[role]:
            renamed = _RENAMED.get(name, name)
            settings[renamed] = _within(RANGES[renamed], value) if renamed in RANGES else value
        elif name not in LOG_IN:
            log.debug("cluster %r: %s has no meaning for librdkafka and is left out", cluster.alias, name)
    security = security_of(cluster.alias, java)
    settings["security.protocol"] = security.protocol.lower()
    if security.is_encrypted:
        settings |= _trust(security) | _identity(security.keystore)
    if security.login:
        settings |= _login(security.login)
    return settings


def _within(allowed: tuple[int, int], value: str) -> str:
    """A number brought within a range; what is no number stays, for librdkafka to refuse."""
    number = re.fullmatch(r"\s*([+-]?[0-9]+)\s*", value, re.ASCII)
    return str(max(allowed[0], min(int(number[1]), allowed[1]))) if number else value


def _trust(security: Security) -> dict[str, str]:
    """Whom to trust. librdkafka reads PEM only, so the certificates of another truststore become PEM."""
    settings = {"ssl.endpoint.identification.algorithm": "https" if security.checks_names else "none"}
    store = security.truststore
    if store is None:
        return settings
    if store.certificates:
        return settings | {"ssl.ca.pem": store.certificates}
    if kind_of(store) == "PEM":
        return settings | {"ssl.ca.location": store.location}
    return settings | {"ssl.ca.pem": trusted(store)}


def _identity(store: Store | None) -> dict[str, str]:
    """The client's own certificate and key: PEM texts, a PEM file with both, or a store."""
    if store is None:
        return {}
    key_password = {} if store.key_password is None else {"ssl.key.password": store.key_password}
    if store.certificates:
        return {"ssl.certificate.pem": store.certificates, "ssl.key.pem": store.key} | key_password
    kind = kind_of(store)
    if kind == "PEM":
        return {"ssl.certificate.location": store.location, "ssl.key.location": store.location} | key_password
    if kind == "JKS":
        chain, key, _ = identity(store)
        return {"ssl.certificate.pem": chain, "ssl.key.pem": key}
    password = {} if store.password is None else {"ssl.keystore.password": store.password}
    return {"ssl.keystore.location": store.location} | password | key_password


def _login(login: Login) -> dict[str, str]:
    settings = {"sasl.mechanism": login.mechanism}
    if login.mechanism == OAUTHBEARER:
        named = {
            "sasl.oauthbearer.token.endpoint.url": login.token_url,
            "sasl.oauthbearer.client.id": login.client_id,
            "sasl.oauthbearer.client.secret": login.client_secret,
            "sasl.oauthbearer.scope": login.scope,
        }
        return settings | {"sasl.oauthbearer.method": "oidc"} | {key: value for key, value in named.items() if value}
    return settings | {"sasl.username": login.username, "sasl.password": login.password}

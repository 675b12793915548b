"""Client settings by Java's names turned into librdkafka's, for confluent-kafka.

What only Java knows (serializers, interceptors, buffers) is dropped with a debug line; what can't be dropped without
changing who is trusted or how to log in (a JCEKS store, a login class) is an error.
"""

from __future__ import annotations

import logging

from airmirror.clusters.security.model import OAUTHBEARER, Login, Security, Store
from airmirror.clusters.security.settings import security_of
from airmirror.clusters.security.stores import identity, kind_of, trusted
from airmirror.config import Cluster

log = logging.getLogger(__name__)


_SAME = (
    "bootstrap.servers client.dns.lookup client.id connections.max.idle.ms enable.metrics.push metadata.max.age.ms "
    "reconnect.backoff.max.ms reconnect.backoff.ms retry.backoff.max.ms retry.backoff.ms "
    "socket.connection.setup.timeout.ms"
)
_CONSUMER = (
    "allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs client.rack enable.auto.commit "
    "fetch.max.bytes fetch.min.bytes group.id group.instance.id group.protocol heartbeat.interval.ms isolation.level "
    "max.partition.fetch.bytes max.poll.interval.ms session.timeout.ms"
)
_PRODUCER = (
    "acks batch.size compression.type delivery.timeout.ms enable.idempotence linger.ms "
    "max.in.flight.requests.per.connection retries transaction.timeout.ms transactional.id"
)
_SAME_FOR = {
    "admin": frozenset(_SAME.split()),
    "consumer": frozenset(f"{_SAME} {_CONSUMER}".split()),
    "producer": frozenset(f"{_SAME} {_PRODUCER}".split()),
}
_RENAMED = {
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
_RENAMED_FOR = {
    "admin": _RENAMED,
    "consumer": _RENAMED | {"fetch.max.wait.ms": "fetch.wait.max.ms"},
    "producer": _RENAMED | {"max.request.size": "message.max.bytes"},
}
# Read by the log-in and the stores below.
_READ = frozenset(
    {
        "sasl.jaas.config",
        "sasl.mechanism",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
        "security.protocol",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
        "ssl.key.password",
    }
)


def librdkafka_config(cluster: Cluster, role: str) -> dict[str, str]:
    """librdkafka's settings for one kind of client (admin, consumer, producer). Raises UnsupportedClientSetting."""
    java = cluster.client(role)
    settings: dict[str, str] = {}
    for name, value in java.items():
        if name in _SAME_FOR[role]:
            settings[name] = value
        elif renamed := _RENAMED_FOR[role].get(name):
            settings[renamed] = "0" if value == "-1" else value  # Java's -1, the system's own buffer size, is 0 here
        elif name not in _READ:
            log.debug("cluster %r: %s has no meaning for librdkafka and is left out", cluster.alias, name)
    security = security_of(cluster.alias, java)
    settings["security.protocol"] = security.protocol.lower()
    if security.is_encrypted:
        settings |= _trust(security) | _identity(security.keystore)
    if security.login:
        settings |= _login(security.login)
    return settings


def is_read(name: str) -> bool:
    """Return whether librdkafka knows a client setting, by its Java name."""
    return name in _READ or any(name in _SAME_FOR[role] or name in _RENAMED_FOR[role] for role in _SAME_FOR)


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

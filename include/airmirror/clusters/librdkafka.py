"""Client settings by Java's names turned into librdkafka's, for confluent-kafka.

What only Java knows (serializers, interceptors, buffers) is dropped with a debug line; what can't be dropped without
changing who is trusted or how to log in (a JKS store, a login class) is an error.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from airmirror.config import Cluster
from airmirror.errors import AirmirrorError

log = logging.getLogger(__name__)


@dataclass(eq=False)
class UnsupportedClientSetting(AirmirrorError):
    """A client setting that can't be used with librdkafka. The message never holds its value."""

    alias: str
    key: str
    reason: str

    def __str__(self) -> str:
        return f"cluster {self.alias!r}: {self.key}: {self.reason}"


_SAME = (
    "bootstrap.servers client.dns.lookup client.id connections.max.idle.ms enable.metrics.push metadata.max.age.ms "
    "reconnect.backoff.max.ms reconnect.backoff.ms retry.backoff.max.ms retry.backoff.ms sasl.kerberos.service.name "
    "socket.connection.setup.timeout.ms ssl.key.password"
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
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "sasl.oauthbearer.scope": "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url": "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}
_RENAMED_FOR = {
    "admin": _RENAMED,
    "consumer": _RENAMED | {"fetch.max.wait.ms": "fetch.wait.max.ms"},
    "producer": _RENAMED | {"max.request.size": "message.max.bytes"},
}
# Read by the log-in and the stores below.
_READ = frozenset(
    {
        "sasl.jaas.config", "sasl.mechanism", "security.protocol", "ssl.endpoint.identification.algorithm",
        "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type", "ssl.truststore.location",
        "ssl.truststore.type",
    }
)  # fmt: skip
_JAVA_LOGIN = ("sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class")


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
    protocol = java.get("security.protocol", "PLAINTEXT").lower()
    settings["security.protocol"] = protocol
    if protocol.endswith("ssl"):
        settings |= _trust(cluster.alias, java) | _identity(cluster.alias, java)
    if protocol.startswith("sasl"):
        settings |= _login(cluster.alias, java)
    return settings


def is_read(name: str) -> bool:
    """Whether a client setting, by its Java name, means anything to librdkafka."""
    return name in _READ or any(name in _SAME_FOR[role] or name in _RENAMED_FOR[role] for role in _SAME_FOR)


def is_refused(name: str) -> bool:
    """Whether a client setting can't be left out, and can't be used either."""
    return name in _JAVA_LOGIN


def _trust(alias: str, java: Mapping[str, str]) -> dict[str, str]:
    """Whom to trust. Java checks host names unless ssl.endpoint.identification.algorithm is empty."""
    checks = java.get("ssl.endpoint.identification.algorithm", "https").lower()
    settings = {"ssl.endpoint.identification.algorithm": checks or "none"}
    if location := java.get("ssl.truststore.location"):
        if java.get("ssl.truststore.type", "JKS").upper() != "PEM":
            way_out = "keytool -exportcert -rfc writes the certificates as PEM; set ssl.truststore.type = PEM"
            raise UnsupportedClientSetting(alias, "ssl.truststore.location", f"only PEM can be read; {way_out}")
        settings["ssl.ca.location"] = location
    return settings


def _identity(alias: str, java: Mapping[str, str]) -> dict[str, str]:
    """The client's own certificate and key: a PEM file with both, or a PKCS#12 store."""
    location = java.get("ssl.keystore.location")
    if not location:
        return {}
    kind = java.get("ssl.keystore.type", "JKS").upper()
    if kind == "PEM":
        return {"ssl.certificate.location": location, "ssl.key.location": location}
    if kind != "PKCS12":
        way_out = "keytool -importkeystore -deststoretype PKCS12 converts it; set ssl.keystore.type = PKCS12"
        raise UnsupportedClientSetting(alias, "ssl.keystore.location", f"only PEM and PKCS12 can be read; {way_out}")
    password = {"ssl.keystore.password": java["ssl.keystore.password"]} if "ssl.keystore.password" in java else {}
    return {"ssl.keystore.location": location} | password


def _login(alias: str, java: Mapping[str, str]) -> dict[str, str]:
    """How to log in, from the JAAS configuration (GSSAPI is Java's default mechanism)."""
    for name in _JAVA_LOGIN:
        if name in java:
            raise UnsupportedClientSetting(alias, name, "Java classes can't run here; log in with PLAIN, SCRAM or OIDC")
    mechanism = java.get("sasl.mechanism", "GSSAPI").upper()
    options = jaas_options(java.get("sasl.jaas.config", ""))
    reader = _MECHANISMS.get(mechanism.partition("-")[0])
    if not reader:
        raise UnsupportedClientSetting(alias, "sasl.mechanism", f"{mechanism} is not one of {', '.join(_MECHANISMS)}")
    return {"sasl.mechanism": mechanism} | reader(alias, options)


def _password(alias: str, options: Mapping[str, str]) -> dict[str, str]:
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise UnsupportedClientSetting(alias, "sasl.jaas.config", f"lacks {' and '.join(missing)}")
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _oauthbearer(_alias: str, options: Mapping[str, str]) -> dict[str, str]:
    named = {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    }
    given = {named[name]: value for name, value in options.items() if name in named}
    return {"sasl.oauthbearer.method": "oidc"} | given


def _kerberos(_alias: str, options: Mapping[str, str]) -> dict[str, str]:
    named = {
        "keyTab": "sasl.kerberos.keytab",
        "principal": "sasl.kerberos.principal",
        "serviceName": "sasl.kerberos.service.name",
    }
    return {named[name]: value for name, value in options.items() if name in named}


_MECHANISMS: dict[str, Callable[[str, Mapping[str, str]], dict[str, str]]] = {
    "PLAIN": _password,
    "SCRAM": _password,
    "OAUTHBEARER": _oauthbearer,
    "GSSAPI": _kerberos,
}

_OPTION = re.compile(r"""(\w+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;"']+)""")


def jaas_options(config: str) -> dict[str, str]:
    """The options of a sasl.jaas.config, as in ``….PlainLoginModule required username="me" password="a \\"b\\"";``."""
    options = {}
    for name, value in _OPTION.findall(config):
        quoted = value[0] in "\"'"
        options[name] = re.sub(r"\\(.)", r"\1", value[1:-1]) if quoted else value
    return options

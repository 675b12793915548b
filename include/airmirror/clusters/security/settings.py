"""Kafka's security settings understood once, for both clients: whom to trust, who we are, how to log in.

Java's defaults hold: Kerberos where no mechanism is named, checked names in certificates, stores in JKS unless the type is set.
What can't be had without changing who is trusted or who logs in is refused, never left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from airmirror.clusters.security.model import (
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    SCRAM,
    Login,
    Security,
    Store,
    UnsupportedClientSetting,
)
from airmirror.clusters.security.stores import identity, trusted
from airmirror.config import Cluster

TOKEN_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"

_CLASSES = {
    "sasl.client.callback.handler.class": (),
    "sasl.login.class": ("org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerRefreshingLogin",),
    "sasl.login.callback.handler.class": (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
    ),
    "sasl.oauthbearer.jwt.retriever.class": (
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        "org.apache.kafka.common.security.oauthbearer.ClientCredentialsJwtRetriever",
    ),
    "ssl.engine.factory.class": ("org.apache.kafka.common.security.ssl.DefaultSslEngineFactory",),
}
"""Settings that name a Java class that logs in or decides whom to trust, and those of Kafka's own that are done here."""


def security_of(alias: str, settings: Mapping[str, str]) -> Security:
    """Return the security that settings (by Java's names) ask for, reading no file. Raises UnsupportedClientSetting."""
    protocol = settings.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol == "PLAINTEXT":
        return Security(protocol)
    for name, known in _CLASSES.items():
        if settings.get(name, "").strip() not in ("", *known) and name.partition(".")[0].upper() in protocol:
            raise UnsupportedClientSetting(alias, name, JAVA_CLASS)
    is_encrypted = protocol.endswith("SSL")
    return Security(
        protocol,
        checks_names=bool(settings.get("ssl.endpoint.identification.algorithm", "https").strip()),
        truststore=_store(alias, settings, "ssl.truststore") if is_encrypted else None,
        keystore=_store(alias, settings, "ssl.keystore") if is_encrypted else None,
        protocols=tuple(each.strip() for each in settings.get("ssl.enabled.protocols", "").split(",") if each.strip()),
        login=_login(alias, settings) if protocol.startswith("SASL") else None,
    )


JAVA_CLASS = "Java classes can't run here; log in with PLAIN, SCRAM, OAUTHBEARER or a certificate"


def is_class(name: str) -> bool:
    return name in _CLASSES


def self_contained(cluster: Cluster) -> Cluster:
    """The cluster with what its stores hold in place of their files, for processes that do not have the files.

    Raises UnsupportedClientSetting.
    """
    roles = {f"{role}.": security_of(cluster.alias, cluster.client(role)) for role in ("consumer", "producer", "admin")}
    alike = len({(each.truststore, each.keystore) for each in roles.values()}) == 1
    own: dict[str, str] = {}
    for prefix, security in [("", roles["consumer."])] if alike else roles.items():
        if security.truststore:
            own[f"{prefix}ssl.truststore.type"] = "PEM"
            own[f"{prefix}ssl.truststore.certificates"] = trusted(security.truststore)
        if security.keystore:
            chain, key, password = identity(security.keystore)
            own[f"{prefix}ssl.keystore.type"] = "PEM"
            own[f"{prefix}ssl.keystore.certificate.chain"] = chain
            own[f"{prefix}ssl.keystore.key"] = key
            if password is not None:
                own[f"{prefix}ssl.key.password"] = password
    if not own:
        return cluster
    rest = {name: value for name, value in cluster.properties.items() if not _STORE_SETTING.search(name)}
    return Cluster(cluster.alias, cluster.bootstrap_servers, rest | own)


_STORE_SETTING = re.compile(r"(^|\.)ssl\.((truststore|keystore)\..+|key\.password)$")


def _store(alias: str, settings: Mapping[str, str], name: str) -> Store | None:
    kind = settings.get(f"{name}.type", "JKS").strip().upper()
    location = settings.get(f"{name}.location", "").strip()
    password = settings.get(f"{name}.password") or None
    key_password = settings.get("ssl.key.password") or None
    certificates = "certificates" if name == "ssl.truststore" else "certificate.chain"
    text, key = settings.get(f"{name}.{certificates}", ""), settings.get(f"{name}.key", "")
    if location and text:
        raise UnsupportedClientSetting(alias, f"{name}.{certificates}", f"{name}.location is set too; keep one of them")
    if name == "ssl.keystore" and bool(text) != bool(key):
        raise UnsupportedClientSetting(alias, f"{name}.key", f"it and {name}.{certificates} belong together")
    if text:
        return Store(alias, name, "PEM", certificates=text, key=key, key_password=key_password)
    return Store(alias, name, kind, location, password, key_password=key_password) if location else None


def _login(alias: str, settings: Mapping[str, str]) -> Login:
    mechanism = settings.get("sasl.mechanism", "GSSAPI").strip().upper()
    options = jaas_options(settings.get("sasl.jaas.config", ""))
    if mechanism in (PLAIN, *SCRAM):
        if options.get("tokenauth", "false").lower() == "true":
            raise UnsupportedClientSetting(alias, "sasl.jaas.config", "delegation tokens (tokenauth) can't be used")
        missing = [name for name in ("username", "password") if name not in options]
        if missing:
            raise UnsupportedClientSetting(alias, "sasl.jaas.config", f"lacks {' and '.join(missing)}")
        return Login(mechanism, options["username"], options["password"])
    if mechanism == OAUTHBEARER:
        return _token_login(alias, settings, options)
    known = f"not one of {', '.join(MECHANISMS)}"
    raise UnsupportedClientSetting(
        alias, "sasl.mechanism", f"{mechanism} is {known}; {_OTHERS.get(mechanism, LISTENER)}"
    )


LISTENER = "give Airmirror a listener with one of these, or with certificates (security.protocol = SSL)"
_OTHERS = {
    "GSSAPI": f"that is Kerberos, which is meant where none is named: {LISTENER}",
    "AWS_MSK_IAM": "MSK speaks SCRAM-SHA-512 and certificates too: enable one of them for Airmirror; MSK Serverless has neither",
}


def _token_login(alias: str, settings: Mapping[str, str], options: Mapping[str, str]) -> Login:
    """A client with credentials of its own at a token endpoint; no other user's tokens are fetched or made here."""
    credentials = "sasl.oauthbearer.client.credentials.client"
    login = Login(
        OAUTHBEARER,
        token_url=settings.get(TOKEN_ENDPOINT, "").strip(),
        client_id=settings.get(f"{credentials}.id", options.get("clientId", "")),
        client_secret=settings.get(f"{credentials}.secret", options.get("clientSecret", "")),
        scope=settings.get("sasl.oauthbearer.scope", options.get("scope", "")),
    )
    if not _is_safe(login.token_url):
        reason = "must be the https address of a token endpoint (http on this machine only: the client's secret is sent there)"
        raise UnsupportedClientSetting(alias, TOKEN_ENDPOINT, reason)
    if not (login.client_id and login.client_secret):
        reason = "the token endpoint wants it and ….secret (or clientId and clientSecret in sasl.jaas.config)"
        raise UnsupportedClientSetting(alias, f"{credentials}.id", reason)
    return login


def _is_safe(url: str) -> bool:
    """Return whether a secret may be sent there: by TLS, or without leaving this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        return parts.scheme == "https" or (
            parts.scheme == "http" and (host == "localhost" or ip_address(host).is_loopback)
        )
    except ValueError:
        return False


_OPTION = re.compile(r"""(\w+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;"']+)""")


def jaas_options(config: str) -> dict[str, str]:
    """The options of a sasl.jaas.config, as in ``….PlainLoginModule required username="me" password="a \\"b\\"";``."""
    options = {}
    for name, value in _OPTION.findall(config):
        quoted = value[0] in "\"'"
        options[name] = re.sub(r"\\(.)", r"\1", value[1:-1]) if quoted else value
    return options

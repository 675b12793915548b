"""A client's security settings in effect: stores, a log-in, and the setting that can't be used."""

from __future__ import annotations

from dataclasses import dataclass, field

from airmirror.errors import AirmirrorError

PLAIN, SCRAM, OAUTHBEARER = "PLAIN", ("SCRAM-SHA-256", "SCRAM-SHA-512"), "OAUTHBEARER"
MECHANISMS = (PLAIN, *SCRAM, OAUTHBEARER)


class UnsupportedClientSetting(AirmirrorError, bad_input=True):
    """A client setting that can't be used. The message never holds its value."""

    says = "cluster {0.alias!r}: {0.key}: {0.reason}"
    alias: str
    key: str
    reason: str


@dataclass(frozen=True)
class Store:
    """A truststore (``name`` "ssl.truststore") or a keystore: a file, or PEM texts among the settings."""

    alias: str
    name: str
    kind: str  # as the settings name it: JKS, PKCS12 or PEM
    location: str = ""
    password: str | None = field(default=None, repr=False)
    certificates: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    key_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Login:
    """A log-in: the mechanism, and what it needs of the JAAS configuration and of ``sasl.oauthbearer.…``."""

    mechanism: str
    username: str = ""
    password: str = field(default="", repr=False)
    token_url: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""


@dataclass(frozen=True)
class Security:
    """The effect of ``security.protocol``, ``ssl.…`` and ``sasl.…`` for one kind of client of a cluster."""

    protocol: str
    checks_names: bool = True
    truststore: Store | None = None
    keystore: Store | None = None
    protocols: tuple[str, ...] = ()  # ssl.enabled.protocols
    login: Login | None = None

    @property
    def is_encrypted(self) -> bool:
        return self.protocol.endswith("SSL")

"""How bytes travel to the brokers of a cluster: in plain or over TLS, and who we say that we are."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from airmirror.clusters.protocol.sasl import Authentication, authentication_of
from airmirror.clusters.security.settings import security_of
from airmirror.clusters.security.tls import context_of
from airmirror.config import Cluster


@dataclass(frozen=True)
class Transport:
    """What every connection of one kind of client shares."""

    tls: ssl.SSLContext | None = None
    authentication: Authentication | None = None


PLAINTEXT = Transport()


def transport(cluster: Cluster, role: str) -> Transport:
    """As the settings of the cluster's consumers or producers say. Raises UnsupportedClientSetting."""
    security = security_of(cluster.alias, cluster.client(role))
    return Transport(
        context_of(cluster.alias, security) if security.is_encrypted else None,
        authentication_of(cluster.alias, security.login) if security.login else None,
    )

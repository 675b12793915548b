"""The transport to the brokers of a cluster: plaintext or TLS, and the log-in."""

from __future__ import annotations

from functools import partial

from airmirror.clusters.protocol.connection import Transport
from airmirror.clusters.protocol.sasl import authenticate, exchanges_of
from airmirror.clusters.security.settings import security_of
from airmirror.clusters.security.tls import context_of
from airmirror.config import Cluster


def transport(cluster: Cluster, role: str) -> Transport:
    """As the settings of the cluster's consumers or producers say. Raises UnsupportedClientSetting."""
    security = security_of(cluster.alias, cluster.client(role))
    login = security.login
    return Transport(
        context_of(cluster.alias, security) if security.is_encrypted else None,
        partial(authenticate, mechanism=login.mechanism, begin=exchanges_of(cluster.alias, login)) if login else None,
    )

"""Clusters' client settings from Airflow connections, for tasks and commands; secrets are kept out of task logs.

The connection's extra holds librdkafka's names or Java's; they become Java's here, which a configuration speaks. Its host, login
and password stand for bootstrap.servers, sasl.username and sasl.password where the extra has none.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from airmirror.clusters.security.settings import jaas_options
from airmirror.config import Cluster, Configuration, Flow, connections_of
from airmirror.config.values import as_list, is_secret
from airmirror.errors import AirmirrorError

log = logging.getLogger(__name__)

_JAVA_NAMES = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
    "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
}
# librdkafka has certificate and key in a file each, Java in one: they become texts.
_FILES = {"ssl.certificate.location": "ssl.keystore.certificate.chain", "ssl.key.location": "ssl.keystore.key"}
_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class BadConnection(AirmirrorError, bad_input=True):
    """An Airflow connection that a cluster names and that can't be used. No value of it is in the message."""

    cluster: str
    conn_id: str
    reason: str
    says = "cluster {0.cluster!r}: Airflow connection {0.conn_id!r} ({0.cluster}.airflow.conn.id): {0.reason}"


def with_connections(configuration: Configuration, flow: Flow) -> Flow:
    """The flow with what its clusters' connections hold over what the file says. Raises BadConnection."""
    return replace(flow, source=connected(configuration, flow.source), target=connected(configuration, flow.target))


def connected(configuration: Configuration, cluster: Cluster) -> Cluster:
    """A cluster with what its connection holds, if it names one. Raises BadConnection."""
    conn_id = connections_of(configuration).get(cluster.alias)
    found = from_connection(cluster, conn_id) if conn_id else cluster
    for secret in _secrets(found.properties):
        mask_secret(secret)
    return found


def with_neighbours(configuration: Configuration, flow: Flow) -> Configuration:
    """The configuration, with connections for the other flows to the flow's target: their sources may be asked for topics.

    One whose connection can't be used stays as it is: that is its own flow's error, not this one's.
    """
    flows = dict(configuration.flows)
    for name, other in configuration.flows.items():
        if other.enabled and other.target.alias == flow.target.alias and name != flow.name:
            try:
                flows[name] = with_connections(configuration, other)
            except BadConnection as error:
                log.warning("%s", error)
    return replace(configuration, flows=flows)


def from_connection(cluster: Cluster, conn_id: str) -> Cluster:
    """A cluster with what a connection holds over its own settings. Raises BadConnection."""
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        raise BadConnection(cluster.alias, conn_id, "there is no such connection") from error
    try:
        extra = json.loads(connection.extra or "{}")
    except ValueError as error:
        raise BadConnection(cluster.alias, conn_id, "its extra is no JSON") from error
    if not isinstance(extra, dict):
        raise BadConnection(cluster.alias, conn_id, "its extra must be a JSON object of client settings")
    given = _form(connection) | {str(key): str(value) for key, value in extra.items() if value not in (None, "")}
    try:
        settings = java_settings(given)
    except OSError as error:
        raise BadConnection(cluster.alias, conn_id, f"{error.filename} can't be read: {error.strerror}") from error
    servers = as_list(settings.pop("bootstrap.servers", "")) or cluster.bootstrap_servers
    if not servers:
        raise BadConnection(cluster.alias, conn_id, "neither it nor the file has bootstrap.servers")
    return Cluster(cluster.alias, servers, {**cluster.properties, **settings})


def _form(connection: Connection) -> dict[str, str]:
    """The form's own fields, in librdkafka's names."""
    host = f"{connection.host}:{connection.port}" if connection.host and connection.port else connection.host
    fields = {"bootstrap.servers": host, "sasl.username": connection.login, "sasl.password": connection.password}
    return {name: value for name, value in fields.items() if value}


def java_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """librdkafka's client settings by Java's names; what has one name only is left as it is. Raises OSError."""
    found = {_JAVA_NAMES.get(key, key): value for key, value in settings.items()}
    for key in _FILES.keys() & found.keys():
        found[_FILES[key]] = Path(found.pop(key)).read_text()
    user, password = found.pop("sasl.username", None), found.pop("sasl.password", None)
    if user is not None and password is not None and "sasl.jaas.config" not in found:
        module = _LOGIN.get(found.get("sasl.mechanism", "").upper(), _LOGIN["PLAIN"])
        found["sasl.jaas.config"] = f"{module} required username={_quoted(user)} password={_quoted(password)};"
    if "ssl.truststore.location" in found and "ssl.ca.location" in settings:
        found.setdefault("ssl.truststore.type", "PEM")
    return found


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _secrets(properties: Mapping[str, str]) -> Iterator[str]:
    for key, value in properties.items():
        if is_secret(key) and value:
            yield value
            if "jaas.config" in key:  # the password inside it too
                yield from (part for part in jaas_options(value).values() if len(part) > 3)

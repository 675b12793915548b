"""A cluster as an administrator sees it: its topics and their configs; and settings for confluent-kafka's clients."""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigEntry, ConfigResource, ConfigSource, ResourceType
from tenacity import RetryCallState, Retrying, wait_incrementing

from airmirror.clusters.admin.description import ConfigValue
from airmirror.clusters.admin.librdkafka import librdkafka_config
from airmirror.clusters.admin.shared import drop, shared
from airmirror.clusters.security.model import UnsupportedClientSetting
from airmirror.config import Cluster
from airmirror.errors import AirmirrorError
from airmirror.partitions import batches

TRANSACTION_TIMEOUT_MS = 60_000  # librdkafka's own default
TIMEOUT = 15.0
"""Seconds after which a cluster that does not answer is called unreachable."""

BATCH = 500  # topics described in one request
DESTROY_BROKER = -137  # librdkafka's number: the oldest confluent-kafka that is allowed has no name for it
DROPPED = {DESTROY_BROKER: 5}
IN_VAIN = {**DROPPED, KafkaError._TIMED_OUT: 2}
"""How often a question is asked that was in vain, by librdkafka's error: one that it drops costs no time."""

Answer = TypeVar("Answer")

log = logging.getLogger(__name__)

# librdkafka says every failed attempt to connect; what matters of it is in the errors raised.
_librdkafka_log = logging.getLogger("airmirror.librdkafka")
_librdkafka_log.addFilter(lambda _: log.isEnabledFor(logging.DEBUG))


class ClusterUnreachable(AirmirrorError, transient=True):
    """No broker of a cluster answers in time."""

    says = (
        "cluster {0.alias!r} can't be reached at {0.bootstrap}: {0.reason}; "
        "are its brokers up, and is {0.alias}.bootstrap.servers right?"
    )
    alias: str
    bootstrap: str
    reason: str


class HostNotResolved(ClusterUnreachable, transient=False, bad_input=True):
    """No address belongs to the name of any broker in bootstrap.servers."""


class AccessDenied(AirmirrorError):
    """A cluster that refuses to let us in, or to do what we ask."""

    says = (
        "cluster {0.alias!r} at {0.bootstrap} denies access: {0.reason}; "
        "see {0.alias}.security.protocol, {0.alias}.sasl.… and {0.alias}.ssl.…, or the user's ACLs"
    )
    alias: str
    bootstrap: str
    reason: str


@dataclass
class Admin:
    """An AdminClient, the cluster it is for, and what its connections last complained about."""

    cluster: Cluster
    client: AdminClient
    complaints: list[KafkaError] = field(default_factory=list)

    def failed(self, error: KafkaException) -> AirmirrorError:
        """Return the error that a KafkaException of this client means: HostNotResolved, ClusterUnreachable or AccessDenied.

        The client is not shared further: what it complained of is no later failure's reason.
        """
        self.client.poll(0)
        drop(self.client)
        cause: KafkaError = error.args[0]
        complaint = next((c for c in reversed(self.complaints) if c.code() != KafkaError._ALL_BROKERS_DOWN), cause)
        bootstrap = ",".join(self.cluster.bootstrap_servers)
        for each in (cause, complaint):
            if is_denial(each):
                return AccessDenied(self.cluster.alias, bootstrap, each.str())
        unknown = _unresolved(self.cluster.bootstrap_servers)
        if unknown:
            return HostNotResolved(self.cluster.alias, bootstrap, f"no address belongs to {unknown}")
        return ClusterUnreachable(self.cluster.alias, bootstrap, complaint.str())

    def topic_names(self, timeout: float = TIMEOUT) -> tuple[str, ...]:
        """The names of all topics, in order. Raises what describe() raises."""
        return tuple(sorted(self.metadata(timeout).topics))

    def metadata(self, timeout: float = TIMEOUT) -> ClusterMetadata:
        """The brokers and all topics, with their leaders. Raises what describe() raises."""
        return self.ask(lambda: self.client.list_topics(timeout=timeout), DROPPED)

    def ask(self, question: Callable[[], Answer], in_vain: Mapping[int, int] = IN_VAIN) -> Answer:
        """Return the answer to a question that changes nothing. Raises the error that ``failed`` returns.

        Where it was ``in_vain`` it is asked again, with new metadata: librdkafka drops a question to a node that it lets go, as
        one that was started again; and it waits for a controller that has died, which a cluster names for seconds.
        """

        def refresh(_: object) -> None:
            self.client.list_topics(timeout=TIMEOUT)

        def is_asked_again(state: RetryCallState) -> bool:
            error = state.outcome.exception() if state.outcome else None
            return error is not None and state.attempt_number < in_vain.get(code_of(error), 1)

        again = Retrying(retry=is_asked_again, before_sleep=refresh, wait=wait_incrementing(0, 0.1))
        try:
            return again(question)
        except KafkaException as error:
            raise self.failed(error) from error


def code_of(error: BaseException) -> int:
    return error.args[0].code() if isinstance(error, KafkaException) else KafkaError._FAIL


def said(error: BaseException) -> str:
    """The reason of a refusal, in the cluster's words."""
    cause = error.args[0] if isinstance(error, KafkaException) else None
    return cause.str() if isinstance(cause, KafkaError) else str(error)


def connect(cluster: Cluster) -> Admin:
    """A client for administration, shared by the calls of a minute; nothing is sent yet. Raises UnsupportedClientSetting."""
    settings: dict[str, Any] = librdkafka_config(cluster, "admin")
    own = settings | {"logger": _librdkafka_log}
    try:
        found = shared(settings, lambda complain: AdminClient(own | {"error_cb": complain}))
        return Admin(cluster, found.client, found.complaints)
    except KafkaException as error:
        raise UnsupportedClientSetting(cluster.alias, "client settings", error.args[0].str()) from error


def producer(cluster: Cluster, settings: Mapping[str, Any]) -> Producer:
    """confluent-kafka's Producer, with ``settings`` over the cluster's.

    Raises UnsupportedClientSetting, also for what librdkafka does not take.
    """
    found: dict[str, Any] = librdkafka_config(cluster, "producer") | dict(settings)
    try:
        if "transactional.id" in found:  # librdkafka refuses what may last longer than the transaction
            longest = int(found.setdefault("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS))
            for name, default in (("delivery.timeout.ms", longest), ("socket.timeout.ms", TRANSACTION_TIMEOUT_MS)):
                found[name] = min(int(found.get(name, default)), longest)
        return Producer(found | {"logger": _librdkafka_log})
    except (KafkaException, TypeError, ValueError) as error:
        raise UnsupportedClientSetting(cluster.alias, f"{cluster.alias}.producer.…", said(error)) from error


def describe(cluster: Cluster | Admin, timeout: float = TIMEOUT) -> dict[str, int]:
    """Return the numbers of partitions of a cluster's topics, within ``timeout`` seconds.

    Raises ClusterUnreachable (transient), HostNotResolved, AccessDenied, UnsupportedClientSetting.
    """
    admin = cluster if isinstance(cluster, Admin) else connect(cluster)
    topics = _described(admin, admin.metadata(timeout).topics, timeout)
    return {name: len(topic.partitions) for name, topic in topics.items()}


def existing(admin: Admin, names: Collection[str], timeout: float = TIMEOUT) -> set[str]:
    """Those of ``names`` that are topics of the cluster; no other topic is asked for. Raises what describe() raises."""
    return set(_described(admin, names, timeout))


def _described(admin: Admin, names: Collection[str], timeout: float) -> dict[str, Any]:
    """The descriptions of topics, by name; a topic deleted meanwhile is absent."""

    def described() -> dict[str, Any]:
        asked: dict[str, Future[Any]] = {}
        for batch in batches(sorted(names), BATCH):
            asked |= admin.client.describe_topics(TopicCollection(batch), request_timeout=timeout)
        return {name: topic for name, future in asked.items() if (topic := _unless_deleted(future))}

    return admin.ask(described)


def topic_configs(
    cluster: Cluster | Admin, names: Collection[str], timeout: float = TIMEOUT
) -> dict[str, dict[str, ConfigValue]]:
    """The configs of topics, by topic and key; a topic deleted meanwhile is absent. Raises as describe() does."""
    admin = cluster if isinstance(cluster, Admin) else connect(cluster)

    def described() -> dict[str, dict[str, ConfigValue]]:
        found: dict[str, dict[str, ConfigValue]] = {}
        for batch in batches(sorted(names), BATCH):
            resources = [ConfigResource(ResourceType.TOPIC, name) for name in batch]
            for resource, future in admin.client.describe_configs(resources, request_timeout=timeout).items():
                with _named(admin, resource.name):
                    if entries := _unless_deleted(future):
                        found[resource.name] = {name: _config_value(entry) for name, entry in entries.items()}
        return found

    return admin.ask(described)


@contextmanager
def _named(admin: Admin, topic: str) -> Iterator[None]:
    """A denial names the topic and the operation, which the broker does not."""
    try:
        yield
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise
        said = f"{error.args[0].str()} this user needs DescribeConfigs on topic {topic!r}"
        raise AccessDenied(admin.cluster.alias, ",".join(admin.cluster.bootstrap_servers), said) from error


def _unless_deleted(future: Future[Any]) -> Any:
    """The result; None for a topic that is gone (or not everywhere yet)."""
    try:
        return future.result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise


def _config_value(entry: ConfigEntry) -> ConfigValue:
    return ConfigValue(entry.value, ConfigSource(entry.source).name, entry.is_read_only, entry.is_sensitive)


DENIED = {
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
    KafkaError.ILLEGAL_SASL_STATE,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


def is_denial(error: KafkaError) -> bool:
    """Return whether an error denies access; a connection that ends during a log-in says nothing of the kind."""
    return error.code() in DENIED and not _ENDED.search(error.str() or "")


_ENDED = re.compile("disconnected|transport failure", re.IGNORECASE)


def _unresolved(servers: Collection[str]) -> str:
    """The names of the brokers, if none of them has an address; a resolver that is down is not a wrong name."""
    unknown = []
    for server in servers:
        host, _, port = server.rpartition(":")
        try:
            socket.getaddrinfo(host.strip("[]"), port)
            return ""
        except socket.gaierror as error:
            if error.errno == socket.EAI_AGAIN:
                return ""
            unknown.append(host)
    return ", ".join(unknown)

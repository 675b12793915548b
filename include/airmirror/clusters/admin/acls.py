"""ACLs of topics on a cluster: described, created and deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from airmirror.clusters.admin.client import TIMEOUT, Admin, said
from airmirror.errors import AirmirrorError

BATCH = 500
"""ACLs created in one request: each is a metadata record, and a KRaft controller takes 10,000 in one go."""


@dataclass(frozen=True, order=True)
class Acl:
    """One ACL of a topic. ``pattern``, ``operation`` and ``permission`` in Kafka's words (LITERAL, READ, ALLOW, …)."""

    topic: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str

    def __str__(self) -> str:
        return f"{self.permission} {self.operation} on {self.topic} to {self.principal} from host {self.host}"


class NoAuthorizer(AirmirrorError):
    """A cluster that has no ACLs, because it has no authorizer."""

    says = "cluster {0.alias!r} has no authorizer, so it has no ACLs"
    alias: str


class AclRefused(AirmirrorError):
    """An ACL that can't be created, or deleted."""

    says = (
        "cluster {0.alias!r}: the ACL {0.acl} can't be changed: {0.reason}; "
        "the user needs ALTER on the cluster; sync.topic.acls.enabled = false copies no ACLs"
    )
    alias: str
    acl: Acl
    reason: str


def topic_acls(admin: Admin, timeout: float = TIMEOUT) -> frozenset[Acl]:
    """All ACLs of topics, whatever their pattern. Raises NoAuthorizer, and what describe() raises."""
    anything: Any = None
    every = AclBindingFilter(
        ResourceType.TOPIC,
        anything,
        ResourcePatternType.ANY,
        anything,
        anything,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )

    def described() -> Sequence[Any]:
        try:
            bindings: Sequence[Any] = admin.client.describe_acls(every, request_timeout=timeout).result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.SECURITY_DISABLED:
                raise NoAuthorizer(admin.cluster.alias) from error
            raise
        if not bindings and _has_no_authorizer(admin, timeout):
            raise NoAuthorizer(admin.cluster.alias)
        return bindings

    return frozenset(map(_acl, admin.ask(described)))


def create_acls(
    admin: Admin, acls: Sequence[Acl], timeout: float = 60.0
) -> tuple[tuple[Acl, ...], tuple[AclRefused, ...]]:
    """Create ACLs; which were created and which were refused, one refused holds up no other."""
    created, refused = [], []
    for batch in _batches(acls):
        futures = admin.client.create_acls([AclBinding(*_parts(acl)) for acl in batch], request_timeout=timeout)
        for binding, future in futures.items():
            error = future.exception()
            if error is None:
                created.append(_acl(binding))
            else:
                refused.append(AclRefused(admin.cluster.alias, _acl(binding), said(error)))
    return tuple(created), tuple(refused)


def delete_acls(admin: Admin, acls: Sequence[Acl], timeout: float = 60.0) -> tuple[AclRefused, ...]:
    """Delete these ACLs and no others; those that could not be. One that is not there is no error."""
    refused = []
    for batch in _batches(acls):
        exact = [AclBindingFilter(*_parts(acl)) for acl in batch]
        for each, future in admin.client.delete_acls(exact, request_timeout=timeout).items():
            error = future.exception()
            if error is not None:
                refused.append(AclRefused(admin.cluster.alias, _acl(each), said(error)))
    return tuple(refused)


def _has_no_authorizer(admin: Admin, timeout: float) -> bool:
    """Asked of a broker's own configuration: librdkafka (2.16) takes a broker's SECURITY_DISABLED for no ACLs."""
    broker = next(iter(admin.client.list_topics(timeout=timeout).brokers))
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    (future,) = admin.client.describe_configs([resource], request_timeout=timeout).values()
    try:
        authorizer = future.result().get("authorizer.class.name")
    except KafkaException as error:
        if error.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED:  # who denies is an authorizer
            return False
        raise
    return authorizer is not None and not authorizer.value


def _batches(acls: Sequence[Acl]) -> Iterator[Sequence[Acl]]:
    return (acls[start : start + BATCH] for start in range(0, len(acls), BATCH))


def _acl(binding: Any) -> Acl:
    return Acl(
        topic=binding.name,
        pattern=binding.resource_pattern_type.name,
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation.name,
        permission=binding.permission_type.name,
    )


def _parts(acl: Acl) -> tuple[Any, ...]:
    """The arguments of an ACL's binding, and of the filter that means it alone."""
    return (
        ResourceType.TOPIC,
        acl.topic,
        ResourcePatternType[acl.pattern],
        acl.principal,
        acl.host,
        AclOperation[acl.operation],
        AclPermissionType[acl.permission],
    )


def writable_topics(admin: Admin, topics: Sequence[str]) -> set[str]:
    """Return those of these topics that this user may write to, as the brokers see it now. Raises a cluster's error."""

    def described() -> set[str]:
        asked = admin.client.describe_topics(
            TopicCollection(list(topics)), include_authorized_operations=True, request_timeout=TIMEOUT
        )
        return {name for name, its in asked.items() if AclOperation.WRITE in its.result().authorized_operations}

    return admin.ask(described)

"""A cluster that denies an operation for a while: ACLs for User:ANONYMOUS, who everybody is on a plaintext listener."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from tenacity import Retrying, stop_after_delay, wait_fixed

from airmirror_local.brokers import Broker
from support.topics import admin

EVERYBODY = "User:ANONYMOUS"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@contextmanager
def denied(cluster: Broker, kind: ResourceType, name: str, operation: AclOperation) -> Iterator[None]:
    """In the block, everything but one operation on a resource is allowed. The cluster was started with AUTHORIZER."""
    everybody = (kind, name, ResourcePatternType.LITERAL, EVERYBODY, "*")
    acls = [
        AclBinding(*everybody, AclOperation.ALL, AclPermissionType.ALLOW),
        AclBinding(*everybody, operation, AclPermissionType.DENY),
    ]
    wanted = AclBindingFilter(
        kind, name, ResourcePatternType.LITERAL, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    patiently = Retrying(stop=stop_after_delay(30), wait=wait_fixed(0.05), reraise=True)
    client = admin(cluster)

    def create() -> None:
        for future in client.create_acls(acls).values():
            future.result()
        assert len(client.describe_acls(wanted).result()) == len(acls)

    def delete() -> None:
        for future in client.delete_acls([wanted]).values():
            future.result()
        assert client.describe_acls(wanted).result() == []

    patiently(create)
    try:
        yield
    finally:
        patiently(delete)


def every_acl(cluster: Broker) -> list[AclBinding]:
    """All ACLs of a cluster that was started with AUTHORIZER."""
    every = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    return sorted(admin(cluster).describe_acls(every).result())

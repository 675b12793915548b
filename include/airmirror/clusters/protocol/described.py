"""Facts that a cluster tells of itself besides its topics: ACLs of every kind, client quotas, users with SCRAM, sizes of logs.

By kafka-python's protocol classes: confluent-kafka has no client quotas and no sizes, and takes a broker without an
authorizer for one without ACLs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin.acl import (
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ACLResourceType,
    DescribeAclsRequest,
)
from kafka.protocol.admin.client_quotas import DescribeClientQuotasRequest
from kafka.protocol.admin.cluster import DescribeLogDirsRequest
from kafka.protocol.admin.users import DescribeUserScramCredentialsRequest

from airmirror.clusters.protocol.asking import ask, each_partition
from airmirror.clusters.protocol.errors import error_name
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition

ACLS = (29, 1, 3, "DescribeAcls")
LOG_DIRS = (35, 1, 4, "DescribeLogDirs")
QUOTAS = (48, 0, 1, "DescribeClientQuotas")
SCRAM = (50, 0, 0, "DescribeUserScramCredentials")
_SECURITY_DISABLED, _NOT_FOUND = 54, 91
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_ANY = 1


class NotDescribed(AirmirrorError):
    """A cluster that does not tell this user something of itself; ``code`` is Kafka's."""

    cluster: str
    what: str
    right: str
    code: int

    def __str__(self) -> str:
        return f"cluster {self.cluster!r} does not tell its {self.what}: {error_name(self.code)}; this user needs {self.right}"


@dataclass(frozen=True, order=True)
class AclBinding:
    """One ACL, in Kafka's words: TOPIC, orders, LITERAL, User:ann, *, READ, ALLOW."""

    resource: str
    name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str

    def __str__(self) -> str:
        pattern = "" if self.pattern == "LITERAL" else f"{self.pattern} "
        return f"{self.permission} {self.operation} on {pattern}{self.resource} {self.name} to {self.principal} from {self.host}"


@dataclass(frozen=True)
class Quota:
    """A client quota: of whom (kind and name; None: the default), its key and value."""

    entity: tuple[tuple[str, str | None], ...]
    key: str
    value: float

    def __str__(self) -> str:
        return f"{self.whom}: {self.key} = {self.value:g}"

    @property
    def user(self) -> str | None:
        """Return the user, None where it is of no user, or of the default one."""
        return dict(self.entity).get("user")

    @property
    def whom(self) -> str:
        return ", ".join(f"{kind} {name if name is not None else '(default)'}" for kind, name in self.entity)


def acl_bindings(routes: Routes) -> list[AclBinding] | None:
    """Every ACL; None where the cluster has no authorizer. Raises NotDescribed, BrokerUnreachable, UnsupportedBroker."""
    request = DescribeAclsRequest(
        resource_type_filter=_ANY,
        resource_name_filter=None,
        pattern_type_filter=_ANY,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )
    answer = ask(routes, request, ACLS)
    if answer.error_code == _SECURITY_DISABLED:
        return None
    _check(routes, "ACLs", "DESCRIBE on the cluster", answer.error_code)
    return sorted(
        AclBinding(
            resource=_word(ACLResourceType, each.resource_type),
            name=each.resource_name,
            pattern=_word(ACLResourcePatternType, each.pattern_type),
            principal=acl.principal,
            host=acl.host,
            operation=_word(ACLOperation, acl.operation),
            permission=_word(ACLPermissionType, acl.permission_type),
        )
        for each in answer.resources
        for acl in each.acls
    )


def client_quotas(routes: Routes) -> list[Quota]:
    """Every client quota. Raises NotDescribed, BrokerUnreachable, UnsupportedBroker."""
    answer = ask(routes, DescribeClientQuotasRequest(components=[], strict=False), QUOTAS)
    _check(routes, "client quotas", "DESCRIBE_CONFIGS on the cluster", answer.error_code)
    found = []
    for entry in answer.entries or ():
        entity = tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity))
        found += [Quota(entity, value.key, value.value) for value in entry.values]
    return sorted(found, key=str)


def scram_users(routes: Routes) -> dict[str, tuple[str, ...]]:
    """The users that have SCRAM credentials, with their mechanisms. Raises NotDescribed, BrokerUnreachable, UnsupportedBroker."""
    answer = ask(routes, DescribeUserScramCredentialsRequest(users=None), SCRAM)
    _check(routes, "users with SCRAM", "DESCRIBE on the cluster", answer.error_code)
    return {
        each.user: tuple(sorted(_MECHANISMS.get(info.mechanism, str(info.mechanism)) for info in each.credential_infos))
        for each in sorted(answer.results, key=lambda each: str(each.user))
        if each.error_code != _NOT_FOUND
    }


def log_sizes(routes: Routes) -> dict[TopicPartition, int]:
    """The bytes of each partition's largest replica. Raises NotDescribed, BrokerUnreachable, UnsupportedBroker."""
    found: dict[TopicPartition, int] = {}
    routes.refresh([])
    for node in routes.nodes:
        answer = ask(routes, DescribeLogDirsRequest(topics=None), LOG_DIRS, node)
        _check(routes, "sizes of logs", "DESCRIBE on the cluster", getattr(answer, "error_code", 0) or 0)
        for directory in answer.results:
            for key, item in each_partition(directory.topics):
                found[key] = max(found.get(key, 0), item.partition_size)
    return found


def _word(words: Any, number: int) -> str:
    try:
        return str(words(number).name)
    except ValueError:  # of a newer Kafka
        return str(number)


def _check(routes: Routes, what: str, right: str, code: int) -> None:
    if code:
        raise NotDescribed(routes.alias, what, right, code)

"""Rights and limits given to clients of a cluster: ACLs of every kind, client quotas. One refused holds up no other.

By kafka-python's protocol classes, as they are described: confluent-kafka has no client quotas.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from kafka.protocol.admin.acl import (
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ACLResourceType,
    CreateAclsRequest,
)
from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest

from airmirror.clusters.protocol.asking import ask
from airmirror.clusters.protocol.described import AclBinding, Quota
from airmirror.clusters.protocol.errors import error_name
from airmirror.clusters.protocol.routes import Routes
from airmirror.partitions import batches

CREATE_ACLS = (30, 1, 3, "CreateAcls")
ALTER_QUOTAS = (49, 0, 1, "AlterClientQuotas")
AT_ONCE = 500  # ACLs of a request: each is a metadata record


def create_acl_bindings(routes: Routes, acls: Sequence[AclBinding]) -> dict[AclBinding, str]:
    """Create ACLs; those that were refused, with the reason. Raises BrokerUnreachable, UnsupportedBroker."""
    creation = CreateAclsRequest.AclCreation
    refused = {}
    for part in batches(acls, AT_ONCE):
        made = [
            creation(
                resource_type=ACLResourceType[each.resource],
                resource_name=each.name,
                resource_pattern_type=ACLResourcePatternType[each.pattern],
                principal=each.principal,
                host=each.host,
                operation=ACLOperation[each.operation],
                permission_type=ACLPermissionType[each.permission],
            )
            for each in part
        ]
        answer = ask(routes, CreateAclsRequest(creations=made), CREATE_ACLS)
        for each, result in zip(part, answer.results, strict=True):
            if result.error_code:
                refused[each] = result.error_message or error_name(result.error_code)
    return refused


def set_quotas(routes: Routes, quotas: Sequence[Quota]) -> dict[str, str]:
    """Set client quotas; whose were refused, with the reason. Raises BrokerUnreachable, UnsupportedBroker."""
    entry = AlterClientQuotasRequest.EntryData
    by_entity = [(entity, list(its)) for entity, its in groupby(sorted(quotas, key=repr), key=lambda each: each.entity)]
    if not by_entity:
        return {}
    asked = [
        entry(
            entity=[entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            ops=[entry.OpData(key=each.key, value=each.value, remove=False) for each in its],
        )
        for entity, its in by_entity
    ]
    answer = ask(routes, AlterClientQuotasRequest(entries=asked, validate_only=False), ALTER_QUOTAS)
    return {
        its[0].whom: result.error_message or error_name(result.error_code)
        for (_, its), result in zip(by_entity, answer.entries, strict=True)
        if result.error_code
    }

"""The ACLs that remote topics should have, from those of their source topics.

Readers of a topic may read its remote topic; no one gains the right to change it, for that is the flow's alone.
MirrorMaker 2 (MirrorSourceConnector.targetAclBinding) keeps back WRITE only: there who administers the source may let
anybody delete, or configure, the target's topics.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from airmirror.clusters.admin.acls import Acl

_READS = ("READ", "DESCRIBE", "DESCRIBE_CONFIGS")


def missing_acls(topics: Mapping[str, str], source: Collection[Acl], target: Collection[Acl]) -> tuple[Acl, ...]:
    """The ACLs to create, in order, what denies first; ``topics`` are the flow's topics with their remote topics. None is ever
    deleted."""
    wanted = {remote for acl in source for remote in remote_acls(topics, acl)}
    return tuple(sorted(wanted - set(target), key=lambda acl: (acl.permission != "DENY", acl)))


def remote_acls(topics: Mapping[str, str], acl: Acl) -> list[Acl]:
    """Return the target's copies of an ACL.

    Of LITERAL ones of topics that the flow replicates: ALLOW of what reads (ALLOW ALL becomes ALLOW READ), and every DENY as it
    is. Of all topics, or of a prefix, only what denies to read, for each remote topic: else an ALLOW would give what the
    source denies.
    """
    reads = acl.operation in ("ALL", *_READS)
    if acl.permission == "ALLOW" and not reads:
        return []
    if acl.pattern == "LITERAL" and acl.topic in topics:
        operation = "READ" if (acl.permission, acl.operation) == ("ALLOW", "ALL") else acl.operation
        return [replace(acl, topic=topics[acl.topic], operation=operation)]
    if acl.permission != "DENY" or not reads:
        return []
    covered = (
        topic for topic in topics if acl.topic == "*" or (acl.pattern == "PREFIXED" and topic.startswith(acl.topic))
    )
    return [replace(acl, topic=topics[topic], pattern="LITERAL") for topic in covered]

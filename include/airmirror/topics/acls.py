"""The ACLs that remote topics should have, from those of their source topics.

Readers of a topic may read its remote topic; nobody gains the right to change it, for that is the flow's alone.
MirrorMaker 2 (MirrorSourceConnector.targetAclBinding) keeps back WRITE only: there who administers the source may let
anybody delete, or configure, the target's topics.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from airmirror.clusters.admin.acls import Acl

_READS = ("READ", "DESCRIBE", "DESCRIBE_CONFIGS")


def missing_acls(topics: Mapping[str, str], source: Collection[Acl], target: Collection[Acl]) -> tuple[Acl, ...]:
    """The ACLs to create, in order; ``topics`` are the flow's topics with their remote topics. None is ever deleted."""
    wanted = {remote for acl in source if (remote := remote_acl(topics, acl))}
    return tuple(sorted(wanted - set(target)))


def remote_acl(topics: Mapping[str, str], acl: Acl) -> Acl | None:
    """Return the target's copy of an ACL; None if it is not copied.

    Only LITERAL ones of topics that the flow replicates are copied (so the one of ``*`` is not): ALLOW of what reads (ALLOW
    ALL becomes ALLOW READ), and every DENY as it is.
    """
    if acl.pattern != "LITERAL" or acl.topic not in topics:
        return None
    if acl.permission == "ALLOW" and acl.operation not in ("ALL", *_READS):
        return None
    operation = "READ" if (acl.permission, acl.operation) == ("ALLOW", "ALL") else acl.operation
    return replace(acl, topic=topics[acl.topic], operation=operation)

"""The ACLs that remote topics should have, from those of their source topics (MirrorSourceConnector.targetAclBinding).

Readers of a topic may read its remote topic; nobody gains the right to write to it, for that is the flow's alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from airmirror.clusters.acls import Acl


def missing_acls(topics: Mapping[str, str], source: Collection[Acl], target: Collection[Acl]) -> tuple[Acl, ...]:
    """The ACLs to create, in order; ``topics`` are the flow's topics with their remote topics. None is ever deleted."""
    wanted = {remote for acl in source if (remote := remote_acl(topics, acl))}
    return tuple(sorted(wanted - set(target)))


def remote_acl(topics: Mapping[str, str], acl: Acl) -> Acl | None:
    """What becomes of an ACL on the target; None if it is not copied.

    Only LITERAL ones of topics that the flow replicates are copied (so the one of ``*`` is not), no ALLOW WRITE, and
    ALLOW ALL becomes ALLOW READ. All else stays as it is, every DENY too.
    """
    if acl.pattern != "LITERAL" or acl.topic not in topics:
        return None
    if (acl.permission, acl.operation) == ("ALLOW", "WRITE"):
        return None
    operation = "READ" if (acl.permission, acl.operation) == ("ALLOW", "ALL") else acl.operation
    return replace(acl, topic=topics[acl.topic], operation=operation)

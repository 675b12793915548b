"""A flow's two ends are two clusters: recognised by their ids, and by the addresses of their brokers where the ids are equal."""

from __future__ import annotations

from airmirror.config import Flow
from airmirror.windows.errors import EqualClusterIds, SameCluster
from airmirror.windows.mirror import Mirror


def check_ends(mirror: Mirror) -> None:
    """Raises SameCluster, or EqualClusterIds where only the ids are equal. Both routes have been refreshed.

    Equal ids with different brokers are one cluster behind two listeners, or two clusters formatted with one id, as
    copied quick starts do: only the user can tell.
    """
    flow, source, target = mirror.flow, mirror.source, mirror.target
    if source.cluster_id != target.cluster_id:
        return
    ends = (flow.name, source.cluster_id, source.alias, target.alias)
    if common := source.endpoints & target.endpoints:
        raise SameCluster(*ends, ", ".join(sorted(common)))
    if not ids_tell_nothing(flow):
        raise EqualClusterIds(*ends, ", ".join(sorted(source.endpoints)), ", ".join(sorted(target.endpoints)))


def ids_tell_nothing(flow: Flow) -> bool:
    """Return whether the user says that the flow's clusters are two although their ids are equal."""
    return flow.settings.equal_cluster_ids_allowed

"""The console's reading of both clusters for topics: what differs, what will be done about it, and sizes. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from airmirror.clusters.protocol.described import log_sizes
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Cluster
from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import Opened, topics_as_known
from airmirror.partitions import grouped
from airmirror.topics.drift import drifts

MOST_ROWS = 2_000
MOST_WARNINGS = 20
PATIENCE = 10.0  # seconds for an answer of a cluster


def differences_page(opened: Opened) -> dict[str, Any]:
    """The flow's topics as both clusters have them now, by the ledger as it is. Raises an AirmirrorError where one can't be
    asked; sizes alone may be missing, and say why."""
    planned = topics_as_known(opened, timeout=PATIENCE)
    rows = drifts(planned)
    on_source, on_target, missing = _sizes(opened.flow.source, opened.flow.target)
    names = sorted(planned.topics.items())
    return {
        "drift": [asdict(row) for row in rows[:MOST_ROWS]],
        "drift_in_all": len(rows),
        "topics": len(planned.topics),
        "acls_not_synced": planned.acls_not_synced or None,
        "warnings": list(planned.warnings[:MOST_WARNINGS]),
        "sizes": {topic: (on_source.get(topic), on_target.get(remote)) for topic, remote in names},
        "sizes_missing": missing,
    }


def _sizes(source: Cluster, target: Cluster) -> tuple[Mapping[str, int], Mapping[str, int], str | None]:
    """Bytes by topic on both clusters, and why they are not known where one does not tell."""
    try:
        return _by_topic(source), _by_topic(target), None
    except AirmirrorError as error:
        return {}, {}, str(error)


def _by_topic(cluster: Cluster) -> dict[str, int]:
    with Routes(cluster, "airmirror-console", timeout=PATIENCE) as routes:
        found = grouped((key.topic, size) for key, size in log_sizes(routes).items())
    return {topic: sum(sizes) for topic, sizes in found.items()}

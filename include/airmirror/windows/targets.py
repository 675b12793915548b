"""Whether the remote topics are still those that were written to: found out in every window, also when nothing is new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airmirror.clusters.routes import Routes
from airmirror.errors import AirmirrorError
from airmirror.windows.errors import TargetTruncated
from airmirror.windows.index import Index
from airmirror.windows.plan import Planned


def with_targets(planned: Sequence[Planned], index: Index, source: str, target: Routes) -> list[Planned]:
    """The plan, with an error for each partition whose remote topic was deleted or created again since it was written."""
    last = index.last_segments()
    missing = target.refresh_existing({item.remote_topic for item in planned if item.key in last})

    def error(item: Planned) -> AirmirrorError | None:
        before = last.get(item.key)
        if item.error is not None or before is None:
            return item.error
        if item.remote_topic in missing:
            return missing[item.remote_topic]
        if target.topic_ids[item.remote_topic] == before.target_topic_id:
            return None
        return TargetTruncated(source, *item.key, target.alias, item.remote_topic, before.target_end, 0)

    return [replace(item, error=error(item)) for item in planned]

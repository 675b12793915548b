"""The clusters of a submitted window as its submitter has them: the driver has no Airflow and, in a pod, none of these files.

They are put over the flows that the driver has read: what a connection holds need not be a key of a configuration.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from airmirror.clusters.security.model import UnsupportedClientSetting
from airmirror.clusters.security.settings import self_contained
from airmirror.config import Cluster, Flow
from airmirror.config.explain import placed
from airmirror.config.resolve import cluster as as_written
from airmirror.config.values import as_list
from airmirror.flows.prepare import Opened

Given = Mapping[str, str | None]  # client settings; None: it is not set


def as_text(opened: Opened, *, in_pod: bool) -> str:
    """What the flow's clusters differ in from the configuration, and the sources of other flows to its target, which may be asked
    for topics. ``in_pod``: what stores hold is in place of their files. Raises UnsupportedClientSetting.
    """
    settings, found = placed(opened.configuration), dict[str, dict[str, Given]]()
    for flow, side, cluster in _ends(opened):
        before, now = _settings(as_written(cluster.alias, settings, flow.name, side)), _settings(cluster)
        try:
            now = _settings(self_contained(cluster)) if in_pod else now
        except UnsupportedClientSetting:
            if flow is opened.flow:  # of another one it is that one's error
                raise
        differ = {key: now.get(key) for key in now.keys() | before.keys() if now.get(key) != before.get(key)}
        found.setdefault(flow.name, {})[side] = differ
    return json.dumps(found)


def with_clusters(opened: Opened, text: str) -> Opened:
    """The opened flow with what ``as_text`` has written of it."""
    given, flows = json.loads(text), dict(opened.configuration.flows)
    for name in given.keys() & flows.keys():
        flows[name] = _over(flows[name], given[name])
    configuration = replace(opened.configuration, flows=flows)
    return replace(opened, configuration=configuration, flow=_over(opened.flow, given[opened.flow.name]))


def _ends(opened: Opened) -> Iterator[tuple[Flow, str, Cluster]]:
    own = opened.flow
    yield from ((own, "source", own.source), (own, "target", own.target))
    for other in opened.configuration.enabled:
        if other.target.alias == own.target.alias and other.name != own.name:
            yield other, "source", other.source


def _settings(cluster: Cluster) -> dict[str, str]:
    return {"bootstrap.servers": ",".join(cluster.bootstrap_servers), **cluster.properties}


def _over(flow: Flow, given: Mapping[str, Given]) -> Flow:
    source, target = (_with(getattr(flow, side), given.get(side, {})) for side in ("source", "target"))
    return replace(flow, source=source, target=target)


def _with(cluster: Cluster, given: Given) -> Cluster:
    settings = {key: value for key, value in {**_settings(cluster), **given}.items() if value is not None}
    return Cluster(cluster.alias, as_list(settings.pop("bootstrap.servers")), settings)

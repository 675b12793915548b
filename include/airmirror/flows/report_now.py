"""A flow's clusters as they are now, for its report: where logs end, what brokers run, what contradicts the record; and its base:
versions, the configuration's digest, the expectations of its gate."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from airmirror import __version__
from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes, TopicNotDescribed
from airmirror.config import Cluster, Flow, resolve
from airmirror.errors import AirmirrorError
from airmirror.flows.gates import Expectations
from airmirror.flows.prepare import Opened
from airmirror.flows.report_rows import StatedRange
from airmirror.partitions import TopicPartition
from airmirror.report.canonical import canonical

OLD = "no features: before Kafka 3.3, or with ZooKeeper"


@dataclass(frozen=True)
class Now:
    """The ends of a cluster's logs now, as far as it answered, what its brokers run, and the reasons why others are not known.

    ``gone``: partitions that it does not have any more; not those that this user may not see.
    """

    ends: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, UUID]
    cluster_id: str
    brokers: tuple[str, ...]
    not_known: tuple[str, ...]
    gone: frozenset[TopicPartition] = frozenset()


def now(cluster: Cluster, keys: Set[TopicPartition]) -> Now:
    """The ends of logs. Raises nothing that a cluster answers: the report has it."""
    try:
        with Routes(cluster, "airmirror|report") as routes:
            missing = routes.refresh_existing({key.topic for key in keys})
            routes.refresh([])
            there = [key for key in keys if routes.has(key)]
            hidden = {topic for topic, error in missing.items() if isinstance(error, TopicNotDescribed)}
            ends = offsets_with_patience(routes, there, LATEST, read_committed=True)
            return Now(
                ends,
                dict(routes.topic_ids),
                routes.cluster_id,
                tuple(_brokers(routes)),
                tuple(f"Where a log ends now: {error}" for error in missing.values()),
                frozenset(key for key in keys - set(there) if key.topic not in hidden),
            )
    except AirmirrorError as error:
        return Now({}, {}, "", (), (f"What cluster {cluster.alias!r} holds now: {error}",))


def left(each: StatedRange, here: Now, positions: Mapping[tuple[str, int], int]) -> int | None:
    """Offsets of the source that are not copied yet; None: not known, or another topic has that name now."""
    end = here.ends.get(each.key) if each.is_newest else None
    if end is None or here.topic_ids.get(each.key.topic) != each.chosen[-1].source_topic_id:
        return None
    return max(0, end - positions.get(each.key, 0))


def contradictions(record: Opened, found: Sequence[StatedRange], here: Now, there: Now) -> Iterator[str]:
    """Yield clusters, topics and logs that are not now what the record says they were."""
    said = record.ledger.identity()
    ids = (said.source_cluster_id, said.target_cluster_id) if said else ("", "")
    for cluster, known, at in zip((record.flow.source, record.flow.target), ids, (here, there), strict=True):
        if known and at.cluster_id and known != at.cluster_id:
            yield f"Cluster {cluster.alias!r} is another one now: its id is {at.cluster_id}, the record says {known}."
    for each in found:
        last = each.chosen[-1]
        remote = last.remote
        sides = ((here, each.key, last.source_topic_id, "source"), (there, remote, last.target_topic_id, "target"))
        for at, key, topic_id, side in sides if each.is_newest else ():
            if at.topic_ids.get(key.topic, topic_id) != topic_id:
                yield f"{key}: the {side} has another topic of that name now; the one of the record is gone."
        if each.is_newest and remote in there.gone:
            yield f"{remote}: the target does not have it any more."
        if each.is_newest and there.ends.get(remote, last.target_end) < last.target_end:
            yield f"{remote}: the target's log ends at {there.ends[remote]} now, the record reached {last.target_end}."


def _brokers(routes: Routes) -> Iterator[str]:
    """Yield a line for each broker: what it says of its version. A broker tells no number, but the features that are on."""
    for node in routes.nodes:
        try:
            connection = routes.connection(node)
        except BrokerUnreachable as error:
            yield f"broker {node}: {error}"
            continue
        features = ", ".join(f"{name} {level}" for name, level in sorted(connection.features.items()))
        yield f"broker {node}: {features or OLD}; Fetch up to {connection.fetch_version}"


def versions(record: Opened, here: Now, there: Now) -> list[dict[str, Any]]:
    """Versions of everything that has a say, as they are now."""
    rows = [
        [row.key, row.value] for row in sorted(resolve(record.configuration, record.flow.name), key=lambda row: row.key)
    ]
    digest = hashlib.sha256(canonical(rows)).hexdigest()
    return [
        {"name": "Airmirror", "value": __version__},
        {"name": "format of the mapping topic", "value": "1"},
        {"name": "window.verify", "value": record.flow.window.verify},
        {"name": "SHA-256 of the configuration, secrets masked", "value": digest},
        *(
            {"name": f"cluster {cluster.alias}", "value": line}
            for cluster, now in ((record.flow.source, here), (record.flow.target, there))
            for line in now.brokers
        ),
    ]


def expectations(flow: Flow, by: Expectations) -> list[dict[str, Any]]:
    """The expectations of the gate, as they are now, with the digest of the file that has them."""
    return [
        {
            "suite": suite.name,
            "topics": list(suite.topics) or ["all"],
            "expectation": each.type,
            "arguments": canonical(_texts(each.kwargs)).decode(),
            "severity": each.severity,
            "sha256_of_the_file": hashlib.sha256(Path(suite.path).read_bytes()).hexdigest(),
        }
        for suite in by.suites or ()
        if suite.is_for_flow(flow.name)
        for each in suite.expectations
    ]


def _texts(value: Any) -> Any:
    """The value with texts for fractions and the like, which canonical JSON has not."""
    if isinstance(value, dict):
        return {str(key): _texts(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_texts(each) for each in value]
    return value if value is None or isinstance(value, str | int) else str(value)

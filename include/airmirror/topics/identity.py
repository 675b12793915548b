"""The other flows of a flow's clusters: identities, read from the mapping topics before anything is written.

Every flow writes its aliases, the ids of both clusters and its rules into its mapping topic. From those on its source a
flow learns by which names the clusters upstream of it are known; where its own target is among them under another name,
no policy could tell that records come back, and the names of topics would grow for ever. What others say there is checked
(``topics.strangers``): what makes no sense is a warning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.admin.client import connect
from airmirror.clusters.protocol.errors import LastStableOffsetStuck
from airmirror.clusters.protocol.log import LATEST, offsets_with_patience, read_batches
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Flow
from airmirror.errors import AirmirrorError, command
from airmirror.ledger import FlowLedger
from airmirror.ledger.errors import ValueNotKept
from airmirror.naming import DefaultReplicationPolicy, is_mapping_topic, mapping_topic
from airmirror.partitions import Entry, TopicPartition
from airmirror.topics.names import other_aliases, policy_of
from airmirror.topics.strangers import flows_of, nonsense, shown
from airmirror.windows.mirror import caught_up_reverse, two_clusters
from airmirror.wire.mappings import FlowIdentity, LaterRecord, decode
from airmirror.wire.plain import plain_records
from airmirror.wire.primitives import MalformedRecord

LEADER_SECONDS, PATIENCE_SECONDS = 5.0, 2.0
PART = 64 << 20  # bytes of a log that are read before it is noted that they were
LARGEST_BATCH = 1 << 20  # bytes without compression: an identity is far smaller


class AliasDiffers(AirmirrorError, bad_input=True):
    """The flow's target is known upstream of its source under another name."""

    says = (
        "flow {0.flow!r}: its target {0.target!r} (cluster id {0.cluster_id}) is called {0.other_alias!r} by "
        "those who bring records to its source {0.source!r} (flow {0.other_flow!r}, says {0.topic!r} there): "
        "records would go round in a loop, and topic names would grow for ever. Call the cluster the same in all "
        "configurations, or declare the other name: {0.flow}.target.cluster.other.aliases = {0.other_alias}; "
        "if that flow no longer runs, say so with {0.other_flow}.enabled = false (where this file knows its clusters), "
        "or delete {0.topic!r} on {0.source!r}"
    )
    flow: str
    source: str
    target: str
    cluster_id: str
    other_alias: str
    other_flow: str
    topic: str


class AliasReused(AirmirrorError, bad_input=True):
    """The flow's internal topics were written by a flow with other clusters, or another name for its target."""

    flow: str
    topic: str
    target: str
    other_flow: str
    ours: tuple[str, str]
    theirs: tuple[str, str]

    def __str__(self) -> str:
        return (
            f"flow {self.flow!r} (cluster ids {' -> '.join(self.ours)}): {self.topic!r} on cluster {self.target!r} holds the "
            f"progress of flow {self.other_flow!r} (cluster ids {' -> '.join(self.theirs)}), which this one would continue. "
            "Use an alias that is not taken; or, if it is the same flow and a cluster was renamed or replaced for good, "
            f"{command('reset', '--identity', flow=self.flow)}"
        )


@dataclass(frozen=True)
class Found:
    """An identity, and where it was read."""

    cluster: str
    topic: str
    identity: FlowIdentity


@dataclass(frozen=True)
class Neighbours:
    """The flows around a flow: the ids of its own clusters, the writers to its source and to its target."""

    source_id: str
    target_id: str
    into_source: tuple[Found, ...]
    into_target: tuple[Found, ...]
    own: Found | None  # what its own mapping topic says
    warnings: tuple[str, ...] = ()  # what others say that makes no sense


def look_around(flow: Flow, ledger: FlowLedger, disabled: Collection[str] = ()) -> Neighbours:
    """Read the identities on both clusters, and what returns by the flow; only what is new since the ledger's last look is read.

    ``disabled``: flows that the configuration says are switched off. Who else writes to the target is of interest only
    where remote topics do not begin with the flow's own alias.
    Raises SameCluster, EqualClusterIds, or what a cluster raises.
    """
    own_topic = mapping_topic(flow.source.alias)
    prefixes = type(policy_of(flow)) is DefaultReplicationPolicy
    with two_clusters(flow, ledger, "identity") as mirror:
        source, target = mirror.source, mirror.target
        with suppress(LastStableOffsetStuck):  # what comes after a dead window's transaction is left for now
            caught_up_reverse(source, flow, ledger, PATIENCE_SECONDS)
        warnings: list[str] = []
        into_source = _identities(source, ledger, warnings)
        into_target = _identities(target, ledger, warnings, own_topic if prefixes else None)
        return Neighbours(
            source_id=source.cluster_id,
            target_id=target.cluster_id,
            into_source=_of_others(into_source, "", disabled, warnings),
            into_target=_of_others(into_target, own_topic, disabled, warnings),
            own=next((found for found in into_target if found.topic == own_topic), None),
            warnings=tuple(warnings),
        )


def check(flow: Flow, around: Neighbours) -> None:
    """Raises AliasDiffers or AliasReused."""
    if own := around.own:
        said, ids = own.identity, (around.source_id, around.target_id)
        written = (said.source_cluster_id, said.target_cluster_id)
        if said.name != flow.name or written != ids:
            raise AliasReused(flow.name, own.topic, flow.target.alias, said.name, ours=ids, theirs=written)
    if flow.settings.equal_cluster_ids_allowed:
        return
    declared = other_aliases(flow)
    for found in around.into_source:
        theirs = found.identity
        for alias, cluster_id in _known(theirs):
            if cluster_id == around.target_id and alias != flow.target.alias and not declared.matches(alias):
                ours, other = (flow.name, flow.source.alias, flow.target.alias), (theirs.name, found.topic)
                raise AliasDiffers(*ours, cluster_id, alias, *other)


def identity(flow: Flow, around: Neighbours) -> FlowIdentity:
    """Return the identity that the flow publishes: itself, and the identities it has read upstream.

    It leaves out the names of its own two clusters, so that no stale name circulates in a ring for ever.
    """
    own = (around.source_id, around.target_id)
    upstream = {pair for found in around.into_source for pair in _known(found.identity) if pair[1] not in own}
    return FlowIdentity(
        source=flow.source.alias,
        target=flow.target.alias,
        source_cluster_id=around.source_id,
        target_cluster_id=around.target_id,
        time_ms=int(time.time() * 1000),
        policy=flow.replication_policy_class,
        separator=flow.replication_policy_separator,
        topics=flow.topics,
        topics_exclude=flow.topics_exclude,
        upstream=tuple(sorted(upstream)),
    )


def introduce(flow: Flow, around: Neighbours) -> bool:
    """Write the flow's identity into its mapping topic, which is there already; whether it said anything new."""
    new = identity(flow, around)
    if around.own is not None and replace(around.own.identity, time_ms=new.time_ms) == new:
        return False
    with Appender(flow.target, mapping_topic(flow.source.alias)) as appender:
        appender.append([(new.encode_key(), new.encode_value())])
    return True


def flows_of_others(flow: Flow, around: Neighbours, known: Collection[str]) -> tuple[tuple[Flow, ...], tuple[str, ...]]:
    """The flows of other configurations that write to the flow's clusters, with this flow's names for its clusters.

    Second: warnings of what others say that makes no sense, or can't be followed here. ``known``: flows of its own
    configuration, enabled or not, which speak for themselves.
    """
    if flow.settings.equal_cluster_ids_allowed:
        return (), around.warnings
    aliases = {around.source_id: flow.source.alias, around.target_id: flow.target.alias}
    said = [found.identity for found in sorted((*around.into_source, *around.into_target), key=_nearness(flow, around))]
    flows, warnings = flows_of(flow, [each for each in said if each.policy and each.name not in known], aliases)
    return flows, (*around.warnings, *warnings)


def _nearness(flow: Flow, around: Neighbours) -> Callable[[Found], int]:
    """The order in which others are looked at, a hundred of them at most: the reverse flow, whose topic no other has by name,
    then those between the same clusters, then all others. So no crowd of strangers hides a loop."""
    own = {around.source_id, around.target_id}

    def nearness(found: Found) -> int:
        if found.cluster == flow.source.alias and found.topic == mapping_topic(flow.target.alias):
            return 0
        return 1 if {found.identity.source_cluster_id, found.identity.target_cluster_id} == own else 2

    return nearness


def _of_others(
    found: Collection[Found], own_topic: str, disabled: Collection[str], warnings: list[str]
) -> tuple[Found, ...]:
    """Those that make sense, of flows that are not switched off; a warning for each that makes none."""
    others = []
    for each in found:
        if each.topic == own_topic or each.identity.name in disabled:
            continue
        if reason := nonsense(each.identity):
            warnings.append(_ignored(each.cluster, each.topic, reason))
        else:
            others.append(each)
    return tuple(others)


def _ignored(cluster: str, topic: str, reason: str) -> str:
    return (
        f"what {topic!r} on cluster {cluster!r} says of the flow that writes it makes no sense and is left out: {reason}; "
        "see who may write to that topic (docs/security.md)"
    )


def _known(theirs: FlowIdentity) -> Iterator[tuple[str, str]]:
    """The clusters from which the flow brings records: alias and id."""
    yield theirs.source, theirs.source_cluster_id
    yield from theirs.upstream


def _identities(routes: Routes, ledger: FlowLedger, warnings: list[str], only: str | None = None) -> tuple[Found, ...]:
    """The identity in every mapping topic of a cluster that has one, or in ``only`` this one.

    What can't be read is added to ``warnings``.
    """
    listed = connect(routes.cluster).topic_names()
    names = {name for name in listed if (name == only if only else is_mapping_topic(name))}
    names -= routes.refresh_existing(names).keys()  # deleted since they were listed
    logs = [TopicPartition(name, 0) for name in sorted(names)]
    ends = offsets_with_patience(routes, routes.with_leader(logs, LEADER_SECONDS), LATEST)
    found = []
    for log in logs:
        part = ledger.part(f"{routes.alias}/{log.topic}")
        start = part.scanned(log.topic, routes.topic_ids[log.topic]).get(0, 0)
        if start < ends.get(log, 0):
            for entries, end, reason in _scan(routes, log, start, ends[log]):
                is_kept = True
                try:
                    part.load(log.topic, routes.topic_ids[log.topic], entries, {0: end}, {0: start})
                except ValueNotKept as error:  # what a stranger writes ends no flow
                    is_kept, reason = False, f"the ledger can't keep it ({shown(error.reason)})"
                if reason:
                    warnings.append(_ignored(routes.alias, log.topic, reason))
                if not is_kept:
                    break
                start = end
        if own := part.identity():
            found.append(Found(routes.alias, log.topic, own))
    return tuple(found)


def _scan(routes: Routes, log: TopicPartition, start: int, end: int) -> Iterator[tuple[list[Entry], int, str]]:
    """Yield the identities in ``[start, end)``, a part of the log at a time: where the part ends, and what is wrong with batches
    of it that can't be read. Who notes where a part ends need not read it again after a look that was cut.

    They are written outside transactions: the batches of others stay undecoded, and so do those too large for one.
    """
    entries, reason, position, read = list[Entry](), "", start, 0
    for buffer, batches in read_batches(routes, log, start, end, read_committed=False):
        if read > PART:
            yield entries, position, reason
            entries, reason, read = [], "", 0
        read += buffer.nbytes
        for batch, _ in batches:
            position = max(position, min(batch.next_offset, end))
            if batch.is_transactional or batch.is_control or batch.next_offset <= start:
                continue
            try:
                records = list(plain_records(buffer, batch, LARGEST_BATCH))
            except AirmirrorError as error:
                reason = f"the batch at offset {batch.base_offset} can't be read ({shown(str(error))})"
                continue
            entries += [
                Entry(0, record.offset, record.timestamp, record.key, record.value)
                for record in records
                if start <= record.offset < end and _is_identity(record.key, record.value)
            ]
    yield entries, end, reason


def _is_identity(key: bytes | None, value: bytes | None) -> bool:
    if key != bytes([FlowIdentity.kind]):
        return False
    try:
        decode(key, value)
    except (LaterRecord, MalformedRecord):  # of a later version: its flow can't be followed, as one without an identity
        return False
    return True

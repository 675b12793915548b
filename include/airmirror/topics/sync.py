"""The remote topics of a flow, brought about: both clusters are looked at, and what the plan says is done.

In this order: topics created, partitions added, configs altered, ACLs created. Topics that can't be had are left out of
the window (``refused``); configs and ACLs that can't be had hold up nothing (``warnings``).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from airmirror.clusters.admin.acls import Acl, NoAuthorizer, create_acls, topic_acls
from airmirror.clusters.admin.alteration import alter_configs
from airmirror.clusters.admin.client import TIMEOUT, AccessDenied, Admin, connect, describe, topic_configs
from airmirror.clusters.admin.creation import create_partitions, create_topics
from airmirror.clusters.admin.description import ConfigChange, ConfigValue, NewPartitions, NewTopic
from airmirror.config import Flow
from airmirror.errors import AirmirrorError, command, counted, named
from airmirror.naming import mapping_topic
from airmirror.tell import Tell, silent
from airmirror.topics.acls import missing_acls
from airmirror.topics.conflicts import duplicates, other_writers, refusals
from airmirror.topics.names import named_like_source, select
from airmirror.topics.remote import REFRESHES, RefusedTopic, Topic, TopicPlan, plan

log = logging.getLogger(__name__)

MOST_NAMED = 20  # topics in one message

_BACKFILLED = (
    "older records of another topic were replicated into it; exclude the topic, or delete what was backfilled and choose "
    "another backfill.into.suffix"
)


@dataclass(frozen=True)
class SyncReport:
    """The changes made on the target, and those that were not possible.

    ``topics``: the source topics that are ready to be replicated, with their remote topics. ``refused``: the others.
    ``notes``: what differs and stays. ``warnings``: what should be and can't be, and holds up nothing.
    """

    topics: Mapping[str, str]
    created: tuple[NewTopic, ...] = ()
    grown: tuple[NewPartitions, ...] = ()
    configs: tuple[ConfigChange, ...] = ()
    acls: tuple[Acl, ...] = ()
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    errors: tuple[AirmirrorError, ...] = field(default=(), repr=False)

    @property
    def lines(self) -> tuple[str, ...]:
        """Everything but what was refused, one line each, for people."""
        notes = (f"note: {text}" for text in self.notes)
        return (*self.changes, *notes, *(f"warning: {text}" for text in self.warnings))

    @property
    def changes(self) -> tuple[str, ...]:
        """Every change, one line each."""
        return (
            *(f"created {topic.name} with {counted(topic.partitions, 'partition')}" for topic in self.created),
            *(f"{more.name} has {more.partitions} partitions instead of {more.before}" for more in self.grown),
            *(f"changed {change}" for change in self.configs),
            *(f"created ACL: {acl}" for acl in self.acls),
        )


def look(
    flow: Flow,
    timeout: float = TIMEOUT,
    others: Collection[Flow] = (),
    ours: Collection[str] = (),
    backfilled: Collection[str] = (),
    frozen: Mapping[str, str] | None = None,
) -> TopicPlan:
    """Return the plan for the flow's remote topics now. Nothing is written.

    ``others``: the enabled flows of the configuration, and those of other configurations (without addresses), which may
    be in the way. ``ours``: the source topics of which the flow has replicated something. ``backfilled``: topics on the
    target that hold older records of other topics (``backfill.into.suffix``).
    ``frozen``: why each topic that is frozen is so, of "" why all others are; empty: it is not frozen.
    Raises what describe() raises.
    """
    source, target = connect(flow.source), connect(flow.target)
    here, there = describe(source, timeout), describe(target, timeout)
    remote = select(flow, here)
    refreshes = flow.settings.refresh_topics_enabled or not ours
    new = [] if refreshes else [each for each, name in remote.items() if each not in ours and name not in there]
    here = {name: count for name, count in here.items() if name not in new}
    remote = {topic: name for topic, name in remote.items() if topic in here}
    old = [name for name in remote.values() if name in there]
    not_ours = {name for topic, name in remote.items() if topic not in ours and name in there}
    in_the_way, warnings = _in_the_way(flow, remote, others, not_ours, timeout)
    in_the_way |= {topic: _BACKFILLED for topic, name in remote.items() if name in backfilled}
    shut = frozen or {}

    def why_shut(topic: str) -> str:
        return shut.get(topic, shut.get("", ""))

    in_the_way |= {topic: why for topic in remote if (why := why_shut(topic))}
    warnings = (*warnings, *duplicates(flow, remote, others))
    # A cluster of an older or newer version has other configs: any of its topics tells which.
    looked_at = topic_configs(target, old) if old else _of_any_topic(target, there)
    planned = plan(
        flow=flow,
        source=_topics(here, topic_configs(source, remote)),
        target=_topics(there, looked_at),
        in_the_way=in_the_way,
        known_configs=next((configs.keys() for configs in looked_at.values()), None),
        refreshes=refreshes,
    )
    if new:
        warnings = (
            *warnings,
            f"{len(new)} new topics are not replicated ({REFRESHES} = false): {named(new, MOST_NAMED)}",
        )
    if alike := named_like_source(flow, here):
        kept = f"{named(alike, MOST_NAMED)} of {flow.source.alias!r}: not replicated, as by their names they came from there"
        warnings = (*warnings, f"{kept}; rename them, exclude them, or give the cluster another alias")
    gone = {topic: remote for topic, remote in select(flow, ours).items() if topic not in here}
    gone = {topic: remote for topic, remote in gone.items() if not why_shut(topic)}  # what is frozen may have moved
    planned = replace(planned, warnings=warnings, refused=(*planned.refused, *_gone(flow, gone)))
    own = {topic: name for topic, name in planned.topics.items() if topic not in flow.returns}
    if not flow.settings.sync_topic_acls_enabled or not own:
        return planned
    try:
        missing = missing_acls(own, topic_acls(source, timeout), topic_acls(target, timeout))
    except NoAuthorizer as error:
        return replace(planned, acls_not_synced=str(error))
    except AccessDenied as error:  # whoever may copy records need not be one who may see ACLs
        way_out = "grant DESCRIBE on the cluster, or set sync.topic.acls.enabled = false"
        denied = f"ACLs are not copied: {error}; {way_out}"
        return replace(planned, acls_not_synced=str(error), warnings=(*warnings, denied))
    return replace(planned, acls=missing)


def _of_any_topic(target: Admin, there: Mapping[str, int]) -> dict[str, dict[str, ConfigValue]]:
    """The configs of one topic; none where there is none, or where this user may not see it: it need not be the flow's."""
    try:
        return topic_configs(target, sorted(there)[:1])
    except AccessDenied:
        return {}


def apply(flow: Flow, planned: TopicPlan, tell: Tell = silent) -> SyncReport:
    """Do what the plan says, and wait until the topics can be written to; at most ``admin.timeout.ms`` for each kind.

    One topic refused holds up no other. Raises what describe() raises.
    """
    if not (planned.create or planned.grow or planned.configs or planned.acls):
        refused = tuple(map(str, planned.refused))
        return _told(flow, SyncReport(planned.topics, refused=refused, notes=planned.notes, warnings=planned.warnings))
    target = connect(flow.target)
    timeout = flow.settings.admin_timeout_ms / 1000
    tell(f"remote topics: {len(planned.create)} to create, {len(planned.grow)} to grow")
    created = create_topics(target, _with_known_configs(flow, planned, target), timeout)
    grown = create_partitions(target, planned.grow, timeout)
    errors = (*created.refused, *grown.refused)
    not_ready = {error.topic for error in created.refused}  # what could not grow is copied as far as it goes
    ready = {topic: remote for topic, remote in planned.topics.items() if remote not in not_ready}
    if planned.configs:
        tell(f"configs: {len(planned.configs)} to change")
    altered = alter_configs(target, planned.configs, timeout)
    if planned.acls:
        tell(f"ACLs: {len(planned.acls)} to create")
    acls, acl_warnings = _create_acls(target, [acl for acl in planned.acls if acl.topic not in not_ready], timeout)
    report = SyncReport(
        topics=ready,
        created=tuple(new for new in planned.create if new.name in created.topics),
        grown=tuple(more for more in planned.grow if more.name in grown.topics),
        configs=altered.changes,
        acls=acls,
        refused=(*map(str, planned.refused), *map(str, errors)),
        notes=planned.notes,
        warnings=(*planned.warnings, *map(str, altered.refused), *acl_warnings),
        errors=errors,
    )
    return _told(flow, report)


def _create_acls(target: Admin, acls: Sequence[Acl], timeout: float) -> tuple[tuple[Acl, ...], list[str]]:
    """Create what denies, then what allows, but not in topics of which a DENY was refused: it would open what is denied here."""
    denies, allows = ([acl for acl in acls if (acl.permission == "DENY") is which] for which in (True, False))
    denied, refused = create_acls(target, denies, timeout)
    open_ = {error.acl.topic for error in refused}
    allowed, others = create_acls(target, [acl for acl in allows if acl.topic not in open_], timeout)
    warnings = [*map(str, refused), *map(str, others)]
    if left := sorted(open_ & {acl.topic for acl in allows}):
        warnings.append(
            f"no ACL that allows was created for {named(left, MOST_NAMED)}: one that denies was refused there"
        )
    return (*denied, *allowed), warnings


def _with_known_configs(flow: Flow, planned: TopicPlan, target: Admin) -> Sequence[NewTopic]:
    """The topics to create, without configs that the target does not know. Where it had no topic at all when they were planned,
    the mapping topic, which is there by now, tells which."""
    mappings = mapping_topic(flow.source.alias)
    known = topic_configs(target, [mappings]).get(mappings) if planned.configs_unknown and planned.create else None
    if known is None:
        return planned.create
    return [
        replace(new, configs={key: value for key, value in new.configs.items() if key in known})
        for new in planned.create
    ]


def _told(flow: Flow, report: SyncReport) -> SyncReport:
    for line in (*report.changes, *report.notes):
        log.info("%s: %s", flow.name, line)
    for line in report.warnings:
        log.warning("%s: %s", flow.name, line)
    return report


def _in_the_way(
    flow: Flow, remote: Mapping[str, str], others: Collection[Flow], not_ours: Collection[str], timeout: float
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return why other flows forbid topics, by topic, and warnings of clusters that could not be asked.

    Other sources are asked only where it matters; one that is down stops no flow but its own. The source of a flow of
    another configuration can't be asked: what is on the target and not of this flow (``not_ours``) counts as its.
    """
    there: dict[str, Collection[str]] = {}
    warnings = []
    writers = {} if flow.is_aggregate else other_writers(flow, remote, others)
    for remote_topic, other, theirs in ((name, *writer) for name, found in writers.items() for writer in found):
        if not other.source.bootstrap_servers:
            if remote_topic in not_ours:
                there[other.source.alias] = (*there.get(other.source.alias, ()), theirs)
            continue
        if other.source.alias in there:
            continue
        try:
            there[other.source.alias] = connect(other.source).topic_names(timeout)
        except AirmirrorError as error:
            there[other.source.alias] = ()
            warnings.append(f"whether flow {other.name!r} writes the same remote topics is not known: {error}")
    return refusals(flow, remote, others, there), tuple(warnings)


def _gone(flow: Flow, topics: Mapping[str, str]) -> list[RefusedTopic]:
    """Topics that were replicated and are no longer there: that is said, and what can be done."""
    gone = f"cluster {flow.source.alias!r} does not have it any more; bring it back, exclude it, or forget it"
    return [
        RefusedTopic(
            flow.source.alias,
            flow.target.alias,
            topic,
            remote,
            f"{gone}: {command('reset', '--topic', topic, '--forget', flow=flow.name)} (its remote topic stays as it is)",
        )
        for topic, remote in topics.items()
    ]


def _topics(counts: Mapping[str, int], configs: dict[str, dict[str, ConfigValue]]) -> dict[str, Topic]:
    return {name: Topic(partitions, configs.get(name, {})) for name, partitions in counts.items()}

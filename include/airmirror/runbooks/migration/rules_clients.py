"""Rules about clients: groups and transactions that cross move groups, applications that need more than positions, and what they
may do: ACLs, users and quotas that the target will lack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from airmirror.clusters.protocol.groups import SHARE
from airmirror.errors import command, counted, named
from airmirror.offsets.translation import Reason
from airmirror.report.document import Finding
from airmirror.runbooks.migration.access import missing_bindings
from airmirror.runbooks.migration.facts import MigrationFacts, known
from airmirror.runbooks.migration.inventory import ACLS, GROUPS, POSITIONS, PRODUCERS, QUOTAS, TRANSACTIONS, USERS
from airmirror.runbooks.migration.moving import STREAMS_TOPICS, readers, writers
from airmirror.runbooks.shown import judged


def rules(facts: MigrationFacts) -> Iterator[Finding]:
    crossing = _crossing(facts, "transactions stay within a move group", "transactional id", writers(facts.source))
    yield known(facts, _with_past(facts, crossing), PRODUCERS, TRANSACTIONS)
    crossing = _crossing(facts, "consumer groups stay within a move group", "group", readers(facts.source))
    yield known(facts, crossing, GROUPS)
    yield known(facts, _positions(facts), POSITIONS)
    yield known(facts, _active_on_target(facts), GROUPS)
    yield _streams(facts)
    yield _connect(facts)
    yield _share(facts)
    yield known(facts, _acls(facts), ACLS)
    yield known(facts, _users(facts), USERS)
    yield known(facts, _quotas(facts), QUOTAS)


def _crossing(facts: MigrationFacts, what: str, kind: str, topics_of: Mapping[str, frozenset[str]]) -> Finding:
    """Something that needs topics of two move groups, or topics that do not move at all."""
    move_of = {topic: move.name for move in facts.moves for topic in move.topics}
    crossing, left = [], []
    for name, topics in topics_of.items():
        moves = sorted({move_of[topic] for topic in topics if topic in move_of})
        outside = sorted(topic for topic in topics - facts.returning if topic not in move_of)
        if len(moves) > 1:
            crossing.append(f"{kind} {name}: topics of {named(moves)}")
        elif moves and outside:
            left.append(f"{kind} {name} of {moves[0]}: {named(outside)}")
    if crossing or kind != "group":
        found, way_out = [*crossing, *left], "put the topics in one move group, or split the application first"
        return judged("stop", what, found, f"{counted(len(topics_of), kind)}, none crosses", "they cross", way_out)
    way_out = "replicate these topics too, or see that the group does not read them any more"
    return judged("warn", what, left, f"{counted(len(topics_of), kind)}, none crosses", "they read what stays", way_out)


def _with_past(facts: MigrationFacts, rule: Finding) -> Finding:
    """The rule, which says where it does not know of transactions that have ended."""
    if not facts.source.past_unknown:
        return rule
    return replace(
        rule, evidence=f"{rule.evidence}; transactions that have ended were not read: {facts.source.past_unknown}"
    )


def _positions(facts: MigrationFacts) -> Finding:
    what, shown = "groups resume at the very next record", command("groups", flow=facts.flow.name)
    points = [point for point in facts.groups if point.reason != Reason.NOT_REPLICATED]
    if not points:
        return Finding("ok", what, "no group has committed anything of these topics")
    lost = [f"{point.group} in {point.topic}-{point.partition}: {point.reason}" for point in points if point.reason]
    if lost:
        return Finding("stop", what, f"they would be left: {named(lost)}", shown)
    rough = [f"{point.group} in {point.topic}-{point.partition}" for point in points if point.exact is False]
    if rough:
        return Finding("warn", what, f"estimated, some records are read twice: {named(rough)}", shown)
    again = sum(point.again for point in points)
    count = counted(len({point.group for point in points}), "group")
    if again:
        window = command("run-window", flow=facts.flow.name)
        return Finding("warn", what, f"{count}; {again:,} offsets are not verified yet", window)
    return Finding("ok", what, f"{count}, {counted(len(points), 'position')}, exact: 0 records are read again")


def _active_on_target(facts: MigrationFacts) -> Finding:
    remote = set(facts.remote.values())
    found = sorted(
        f"{group.name} ({', '.join(sorted({f'{m.client_id} at {m.host}' for m in group.members})) or group.state})"
        for group in facts.target.groups.values()
        if not group.is_idle and remote.intersection(group.topics)
    )
    way_out = "stop these consumers: positions of a group with members can't be written"
    return judged("stop", "no group is active on the target yet", found, "none is", "they have members there", way_out)


def _streams(facts: MigrationFacts) -> Finding:
    internal = sorted(name for name in facts.source.topics if name.endswith(STREAMS_TOPICS))
    applications = {group.name for group in facts.source.groups.values() if group.kind == "streams"}
    applications |= {name for name in facts.source.groups if any(topic.startswith(f"{name}-") for topic in internal)}
    way_out = "stop the application, drain, and move its internal topics with it; or reset it and let it read again"
    said = f"{counted(len(internal), 'internal topic')} of Streams applications"
    found = sorted(applications) or internal
    return judged("warn", "Streams applications can move", found, "there are none", said, way_out)


def _connect(facts: MigrationFacts) -> Finding:
    found = sorted(group.name for group in facts.source.groups.values() if group.protocol == "connect")
    way_out = (
        "workers keep three topics of their own, which are not copied: start workers on the target, and give connectors "
        "their offsets by `airmirror translate --from FILE --to FILE`"
    )
    return judged("warn", "no Connect workers live here", found, "none do", "groups of workers", way_out)


def _share(facts: MigrationFacts) -> Finding:
    kinds = Counter(group.kind or "classic" for group in facts.source.groups.values())
    found = sorted(group.name for group in facts.source.groups.values() if group.kind == SHARE)
    said = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "none at all"
    way_out = "their positions are not followed: drain them on the source before producers are cut over"
    return judged("stop", "no share groups", found, f"there are none; groups: {said}", "share groups", way_out)


def _acls(facts: MigrationFacts) -> Finding:
    what, source, target = "clients may do there what they may here", facts.source, facts.target
    if source.acls is None:
        return Finding("ok", what, f"{source.alias} has no authorizer, so it has no ACLs")
    if not source.acls:
        return Finding("ok", what, f"{source.alias} has no ACLs")
    if target.acls is None and ACLS in target.unknown:
        return Finding("ok", what, "")  # which it is not: see ``known``
    if target.acls is None:
        said = f"{target.alias} has no authorizer: what {counted(len(source.acls), 'ACL')} forbid on {source.alias} is allowed"
        return Finding("warn", what, said, "set authorizer.class.name on its brokers, if that is not meant")
    found = missing_bindings(source.acls, target.acls or (), facts.remote)
    way_out = "sync.topic.acls.mode = migrate copies a move group's before its consumers are cut over; else kafka-acls.sh --add"
    said = f"{counted(len(found), 'ACL')} lacking on {target.alias}"
    return judged("warn", what, [str(acl) for acl in found], "no ACL lacks", said, way_out)


def _users(facts: MigrationFacts) -> Finding:
    there = facts.target.users
    found = [
        f"{user} ({', '.join(mechanisms)})"
        for user, mechanisms in facts.source.users.items()
        if not set(mechanisms) <= set(there.get(user, ()))
    ]
    what = "every user with SCRAM can log in there"
    way_out = "no broker tells a password: make them there, `kafka-configs.sh --alter --entity-type users …`, with new secrets"
    count = counted(len(facts.source.users), "user")
    return judged("warn", what, found, f"{count}, all are there", "they can't be copied", way_out)


def _quotas(facts: MigrationFacts) -> Finding:
    there = {(each.entity, each.key): each.value for each in facts.target.quotas}
    found = [str(each) for each in facts.source.quotas if there.get((each.entity, each.key)) != each.value]
    what = "client quotas are the same there"
    way_out = "set them there, `kafka-configs.sh --alter --add-config …`, if they are meant for that cluster too"
    count = counted(len(facts.source.quotas), "quota")
    return judged("warn", what, found, f"{count}, none lacks or differs", "lacking or different", way_out)

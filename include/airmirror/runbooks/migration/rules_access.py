"""Rules about access: ACLs, users and quotas that the target will lack."""

from __future__ import annotations

from collections.abc import Iterator

from airmirror.errors import counted
from airmirror.report.document import Finding
from airmirror.runbooks.migration.access import missing_bindings
from airmirror.runbooks.migration.facts import MigrationFacts, judged, known
from airmirror.runbooks.migration.inventory import ACLS, QUOTAS, USERS


def rules(facts: MigrationFacts) -> Iterator[Finding]:
    """Yield every rule."""
    yield known(facts, _acls(facts), ACLS)
    yield known(facts, _users(facts), USERS)
    yield known(facts, _quotas(facts), QUOTAS)


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

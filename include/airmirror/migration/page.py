"""A migration's plan as one HTML page: escaped, no script, no other host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from airmirror.errors import counted, named
from airmirror.evidence.reports import when
from airmirror.migration.inventory import Inventory
from airmirror.migration.plan import MigrationPlan
from airmirror.quality.page import document, table

MOST_ROWS = 2_000  # of a section; the JSON has all
MOST_NAMES = 20  # in a cell
_MARKS = {"ok": "", "warn": "warned", "stop": "bad"}


def page(plan: MigrationPlan) -> str:
    """The whole page: first what stands in the way."""
    rules = [(each.level, each.what, each.evidence, each.way_out) for each in plan.rules]
    moves = [
        (
            each.name,
            "configured" if each.configured else "proposed",
            named(each.topics, MOST_NAMES),
            named(each.groups, MOST_NAMES),
            named(each.transactional_ids, MOST_NAMES),
            named(each.principals, MOST_NAMES),
            named(each.ties, MOST_NAMES),
        )
        for each in plan.moves[:MOST_ROWS]
    ]
    parts = [
        f"<p>{when(plan.made_ms)}, in {plan.took_seconds:,.1f} s. {headline(plan)}</p>",
        "<h2>What was asked</h2>",
        table(("", "", "found", "way out"), rules, [_MARKS[each.level] for each in plan.rules]),
        "<h2>Move groups</h2><p>What must move together. Proposals come from what ties topics now.</p>",
        table(("name", "", "topics", "groups", "transactional ids", "principals", "tied by"), moves),
        "<h2>Names</h2><p>What clients use on the target.</p>",
        table(("on the source", "on the target"), list(plan.names.items())[:MOST_ROWS]),
        *_cluster("Source", plan.source),
        *_cluster("Target", plan.target),
    ]
    levels = {rule.level for rule in plan.rules}
    return document(f"Migration plan of {plan.flow}", "".join(parts), "bad" if "stop" in levels else "good")


def headline(plan: MigrationPlan) -> str:
    """The plan in one sentence."""
    count = Counter(rule.level for rule in plan.rules)
    moves = f"{counted(len(plan.moves), 'move group')} of {counted(len(plan.names), 'topic')}"
    return f"{moves}: {count['ok']} rules are ok, {count['warn']} warn, {count['stop']} stop."


def _cluster(side: str, found: Inventory) -> Iterator[str]:
    brokers = counted(len(found.brokers), "broker")
    yield f"<h2>{side}</h2>" + table(("alias", "cluster id", "brokers"), [(found.alias, found.cluster_id, brokers)])
    topics = [
        (
            each.name,
            each.partitions,
            each.replicas,
            each.offsets,
            "not known" if each.bytes is None else each.bytes,
            round(each.rate, 1),
            each.configs.get("cleanup.policy", ""),
            each.configs.get("retention.ms", ""),
        )
        for each in list(found.topics.values())[:MOST_ROWS]
    ]
    columns = ("topic", "partitions", "replicas", "offsets", "bytes", "offsets a second", "cleanup", "retention (ms)")
    yield f"<h3>{counted(len(found.topics), 'topic')}</h3>" + table(columns, topics)
    groups = [
        (
            each.name,
            each.kind or each.protocol,
            each.state,
            named(each.topics, MOST_NAMES),
            named(sorted({f"{member.client_id} at {member.host}" for member in each.members}), MOST_NAMES),
        )
        for each in list(found.groups.values())[:MOST_ROWS]
    ]
    yield f"<h3>{counted(len(found.groups), 'group')}</h3>"
    yield table(("group", "kind", "state", "topics", "members"), groups)
    yield f"<h3>{counted(len(found.producers), 'producer')} in partitions</h3>"
    producers = [
        (str(each.partition), str(each.producer_id), each.epoch, each.last_sequence, when(each.last_ms), each.open_from)
        for each in found.producers[:MOST_ROWS]
    ]
    yield table(("partition", "producer id", "epoch", "last sequence", "last write", "open from"), producers)
    ids = [
        (each.transactional_id, str(each.producer_id), each.state, named(list(map(str, each.partitions)), MOST_NAMES))
        for each in found.transactions[:MOST_ROWS]
    ]
    yield f"<h3>{counted(len(found.transactions), 'transactional id')}</h3>"
    yield table(("transactional id", "producer id", "state", "open in"), ids)
    acls = "no ACLs are known" if found.acls is None else counted(len(found.acls), "ACL")
    yield f"<h3>{acls}</h3>" + table(("ACL",), [(str(acl),) for acl in (found.acls or ())[:MOST_ROWS]])
    quotas = [(each.whom, each.key, f"{each.value:g}") for each in found.quotas[:MOST_ROWS]]
    yield f"<h3>{counted(len(found.quotas), 'quota')}</h3>" + table(("of", "quota", "value"), quotas)
    users = [(name, ", ".join(mechanisms)) for name, mechanisms in list(found.users.items())[:MOST_ROWS]]
    yield f"<h3>{counted(len(found.users), 'user')} with SCRAM</h3>" + table(("user", "mechanisms"), users)

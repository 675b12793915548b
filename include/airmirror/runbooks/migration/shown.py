"""A migration as people and programs are shown it: its plan, how far a move group is, and its outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from airmirror.errors import counted, named
from airmirror.flows.prepare import Opened
from airmirror.report.document import Document, Finding, Row, Section, nothing_stops
from airmirror.rows import row_of, rows_of
from airmirror.runbooks.failback.pair import Pair
from airmirror.runbooks.failover.shown import POSITION
from airmirror.runbooks.migration.chosen import chosen_move
from airmirror.runbooks.migration.inventory import Inventory
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.migration.plan import DAY_MS, MigrationPlan, migration_plan
from airmirror.runbooks.migration.state import MoveState, move_state
from airmirror.runbooks.runbook import Progress, Ran


def planned(opened: Opened, order: MoveOrder, progress: Progress) -> Document:
    return shown_plan(migration_plan(opened, round(order.takes * DAY_MS), progress.phase))


def before(step: str, pair: Pair, order: MoveOrder, progress: Progress) -> Document:
    """Show how far a move group is, and what each step would meet, or ``step``. Raises NoSuchMove, MoveGroupUnfit, a cluster's
    error."""
    progress.phase("looking at both clusters")
    found = move_state(pair.forward, chosen_move(pair.forward, order.move), order)
    return shown_state(found, with_access=step in ("", "mirror"), with_writers=step in ("", "cut_over_producers"))


def ended(pair: Pair, order: MoveOrder, ran: Ran) -> Document:
    """The document of a move group that was moved, as it is after the last step."""
    found = shown_state(move_state(pair.forward, chosen_move(pair.forward, order.move), order))
    took = {"milliseconds": round(ran.seconds * 1000)}
    return replace(found, kind="migration", is_good=True, numbers=took, by=order.by, reason=order.reason)


def shown_state(found: MoveState, *, with_access: bool = True, with_writers: bool = True) -> Document:
    """The document of how far a move group is; not good where its groups can't be cut over, or it can't be finished."""
    groups = rows_of(
        found.groups,
        "group positions to_cut_over=left read_again=again members_on_the_source on_the_target",
        members_on_the_source=lambda each: named(each.members, between="; ") or "none",
        on_the_target=lambda each: str(each.there).removeprefix(f"{each.group}: "),
    )
    partitions = rows_of(found.partitions, "topic partition remote_topic verified source_end=end")
    unfinished = found.unfinished if found.is_frozen else ()
    findings = [
        *(Finding("stop", "groups can be cut over", each) for each in found.reasons),
        *(Finding("warn", "it can be finished", each) for each in unfinished),
        *(Finding("ok", "producers are blocked", each) for each in found.blocks),
    ]
    access = [{"lacks": each} for each in found.access] if with_access else []
    writers = [{"last_writer": each} for each in found.writers] if with_writers else []
    return Document(
        kind="migration state",
        about=f"Migration of {found.move.name} by {found.flow}",
        headline=f"{found.headline}. {found.undo} The next step is {found.next}.",
        is_good=not found.reasons and not unfinished,
        asked={"flow": found.flow, "move": found.move.name},
        numbers={"offsets not verified": found.behind},
        findings=findings,
        sections=[
            Section("partitions", partitions, "Partitions", brief="*", empty=""),
            Section("groups", groups, "Consumer groups", brief="*", empty=""),
            Section("access", access, "On the target", brief="*", empty=""),
            Section("writers", writers, "Last writers", brief="*", empty=""),
        ],
    )


def shown_plan(plan: MigrationPlan) -> Document:
    """The document of a plan: first what stands in the way."""
    facts = plan.facts
    moves: list[Row] = [
        {
            "name": each.name,
            "is": "configured" if each.configured else "proposed",
            "topics": list(each.topics),
            "groups": list(each.groups),
            "transactional_ids": list(each.transactional_ids),
            "principals": list(each.principals),
            "tied_by": list(each.ties),
        }
        for each in facts.moves
    ]
    names = [{"on_the_source": topic, "on_the_target": remote} for topic, remote in sorted(facts.remote.items())]
    return Document(
        kind="migration plan",
        about=f"Migration plan of {facts.flow.name}",
        headline=headline(plan),
        is_good=nothing_stops(plan.rules),
        asked={"flow": facts.flow.name},
        numbers={"milliseconds": round(plan.took_seconds * 1000)},
        findings=plan.rules,
        sections=[
            Section(
                "moves",
                moves,
                "Move groups",
                "What must move together. Proposals come from what ties topics now.",
                brief="name is topics groups transactional_ids",
                empty="nothing moves",
            ),
            Section("names", names, "Names", "The names that clients use on each side."),
            Section("positions", rows_of(facts.groups, POSITION), "Positions of groups"),
            *_cluster("source", facts.source),
            *_cluster("target", facts.target),
        ],
        made_ms=plan.made_ms,
    )


def headline(plan: MigrationPlan) -> str:
    count = Counter(rule.level for rule in plan.rules)
    moves = f"{counted(len(plan.facts.moves), 'move group')} of {counted(len(plan.facts.remote), 'topic')}"
    return f"{moves}: {count['ok']} rules are ok, {count['warn']} warn, {count['stop']} stop."


def _cluster(side: str, found: Inventory) -> Iterator[Section]:
    about = f"Cluster {found.alias}, id {found.cluster_id}, {counted(len(found.brokers), 'broker')}."

    def section(name: str, title: str, rows: Sequence[Row]) -> Section:
        return Section(f"{side}_{name}", rows, f"{title} of the {side}", about if name == "topics" else "")

    topics = [
        row_of(each, "topic=name partitions replicas offsets bytes")
        | {
            "offsets_a_second": round(each.rate),
            "cleanup_policy": each.configs.get("cleanup.policy", ""),
            "retention.ms": each.configs.get("retention.ms", ""),
        }
        for each in found.topics.values()
    ]
    groups = rows_of(
        found.groups.values(),
        "group=name kind state topics members",
        kind=lambda each: each.kind or each.protocol,
        topics=lambda each: list(each.topics),
        members=lambda each: sorted({f"{member.client_id} at {member.host}" for member in each.members}),
    )
    producers = rows_of(
        found.producers,
        "partition producer_id epoch last_sequence last_ms open_from",
        partition=lambda each: str(each.partition),
        producer_id=lambda each: str(each.producer_id),
    )
    ids = rows_of(
        found.transactions,
        "transactional_id producer_id state open_in",
        producer_id=lambda each: str(each.producer_id),
        open_in=lambda each: named(list(map(str, each.partitions)), 20),
    )
    yield section("topics", "Topics", topics)
    yield section("groups", "Groups", groups)
    yield section("producers", "Producers in partitions", producers)
    yield section("transactional_ids", "Transactional ids", ids)
    yield section("acls", "ACLs", [{"acl": str(acl)} for acl in found.acls or ()])
    yield section("quotas", "Quotas", [{"of": e.whom, "quota": e.key, "value": f"{e.value:g}"} for e in found.quotas])
    users: list[Row] = [{"user": name, "mechanisms": list(its)} for name, its in found.users.items()]
    yield section("users", "Users with SCRAM", users)
    unknown: list[Row] = [{"what": what, "why": why} for what, why in found.unknown.items()]
    yield section("unknown", "Not readable", unknown)

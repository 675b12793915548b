"""The plan of a migration: both clusters' inventories, move groups, and rules. Nothing is written but the ledger."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from airmirror.clusters.protocol.groups import GroupsNotRead
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import Opened, caught_up, dry_run
from airmirror.ledger import FlowLedger
from airmirror.report.document import Finding
from airmirror.runbooks.failover.groups import groups_now
from airmirror.runbooks.migration import rules_clients, rules_flow, rules_topics
from airmirror.runbooks.migration.facts import MigrationFacts
from airmirror.runbooks.migration.inventory import POSITIONS, take
from airmirror.runbooks.migration.moving import move_groups
from airmirror.slot.adjacent import explained, look
from airmirror.slot.contract import SlotPartition
from airmirror.tell import Tell, silent
from airmirror.topics.names import came_back, policy_of
from airmirror.windows.mirror import Mirror
from airmirror.windows.plan import Planned

DAY_MS = 24 * 3_600_000
LAST_WINDOWS = 20
LEADER_SECONDS = 3.0


@dataclass(frozen=True)
class MigrationPlan:
    """What a migration of a flow's topics would meet at ``made_ms`` (epoch milliseconds)."""

    facts: MigrationFacts
    made_ms: int
    took_seconds: float
    rules: tuple[Finding, ...]


def migration_plan(opened: Opened, takes_ms: int, tell: Tell = silent) -> MigrationPlan:
    """Look at both clusters. Raises what guards the clusters, what they raise, and InvalidPattern."""
    began, made_ms = time.monotonic(), int(time.time() * 1000)
    opened = caught_up(opened)
    flow, policy = opened.flow, policy_of(opened.flow)
    client = f"airmirror|{flow.name}|migration"
    tell("the inventories of both clusters")
    with ThreadPoolExecutor(2, "inventory") as pool:  # each cluster has its own connections
        source, target = pool.map(lambda cluster: take(cluster, client, policy), (flow.source, flow.target))
    tell("what a window would do")
    topics, planned = dry_run(opened)
    tell("the positions of groups")
    with Mirror.open(flow, opened.ledger, "migration") as mirror:
        try:
            groups = groups_now(mirror, made_ms)
        except GroupsNotRead as error:
            if error.transient:
                raise
            groups, source = [], replace(source, unknown={**source.unknown, POSITIONS: str(error)})
        foreign = [str(error) for error in _foreign_records(flow.source.alias, mirror.target, planned)]
    facts = MigrationFacts(
        flow=flow,
        source=source,
        target=target,
        topics=topics,
        planned=planned,
        groups=groups,
        moves=move_groups(source, topics.topics.keys() & source.topics.keys(), flow.moves),
        unverified=len(opened.ledger.unverified()),
        held=[f"{topic}-{number}" for topic, number in sorted(opened.ledger.holds())],
        foreign=foreign,
        returning=came_back(flow, source.topics),
        copies=_copies(opened.ledger),
        takes_ms=takes_ms,
        has_reverse=opened.configuration.has_reverse(flow),
    )
    rooms = (rules_flow, rules_topics, rules_clients)
    rules = tuple(rule for room in rooms for rule in room.rules(facts))
    return MigrationPlan(facts, made_ms, time.monotonic() - began, rules)


def _copies(ledger: FlowLedger) -> float:
    """Return the records a second of the fastest of the last windows; 0.0 where none has copied."""
    return max(
        (row.copied / max(1.0, (row.last_ms - row.first_ms) / 1000) for row in ledger.windows(LAST_WINDOWS)),
        default=0.0,
    )


def _foreign_records(source: str, target: Routes, planned: Sequence[Planned]) -> list[AirmirrorError]:
    """The errors of partitions whose remote partition holds records of others after what the flow wrote last: looked for as every
    slot does before it writes (invariant B). Those that are in error already, or not there yet, are not looked at.
    """
    asked = [item for item in planned if item.error is None]
    missing = target.refresh_existing({item.remote_topic for item in asked})
    there = [item for item in asked if item.remote_topic not in missing and target.has(item.remote)]
    led = set(target.with_leader([item.remote for item in there], LEADER_SECONDS))
    partitions = [_partition(item, target) for item in there if item.remote in led]
    _, errors = look(source, target, partitions)
    return [error for _, error in sorted(errors.items())]


def _partition(item: Planned, target: Routes) -> SlotPartition:
    """The partition as a slot has it, of which only what concerns its end on the target counts here."""
    before, target_id = item.last, target.topic_ids[item.remote_topic]
    return SlotPartition(
        *item.key,
        remote_topic=item.remote_topic,
        start=item.start,
        end=item.end,
        source_topic_id=before.source_topic_id if before else target_id,
        target_topic_id=target_id,
        target_end=before.target_end if before else -1,
        known_end=explained(before),
        leader_epoch=-1,
        compacted=False,
        max_message_bytes=0,
    )

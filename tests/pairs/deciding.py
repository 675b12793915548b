"""Procedures that are asked with nothing but facts: what would ask a cluster is replaced, what decides is the product's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from airmirror.clusters.admin.description import ConfigValue
from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.groups import Committed
from airmirror.errors import AirmirrorError
from airmirror.flows import freezing
from airmirror.flows.freezing import check_nothing_returns, to_unfreeze
from airmirror.offsets.positions import GroupPosition
from airmirror.offsets.translation import Translated
from airmirror.runbooks import draining
from airmirror.runbooks.failback import pair as failback_pair
from airmirror.runbooks.failback import returning
from airmirror.runbooks.failback import steps as failback_steps
from airmirror.runbooks.failback import undo as failback_undo
from airmirror.runbooks.failback.pair import Pair
from airmirror.runbooks.failback.steps import nothing_left
from airmirror.runbooks.failover import steps as failover_steps
from airmirror.runbooks.failover import undo as failover_undo
from airmirror.runbooks.migration import steps as migration_steps
from airmirror.runbooks.migration import undo as migration_undo
from airmirror.runbooks.migration.carrying import GroupsToPutBack
from airmirror.runbooks.migration.chosen import Move
from airmirror.runbooks.migration.consumers import GroupChecks, _ready
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.moving import PutBack, not_exact
from airmirror.runbooks.rehearsal import rehearse as rehearsing
from airmirror.runbooks.rehearsal.rehearse import RehearsalNeedsSource
from airmirror.runbooks.takeover import handback
from airmirror.topics.configs import TIMESTAMP_TYPE
from airmirror.topics.remote import plan as plan_of_topics
from airmirror.windows.fence import GrantedLease
from airmirror.windows.plan import LogExtent, plan
from airmirror.wire.moves import GroupMove
from airmirror.wire.owners import Change, Owners
from pairs.facts import BILL, END, KEYS, NAMES, SHOP, Facts, changed_by
from support.failovers import PLANNED
from support.large import made
from support.returns import ORDER

# Clusters that are not asked.


def no_clusters(patch: pytest.MonkeyPatch, facts: Facts, leases: list[str]) -> None:
    """Replace all that would ask a cluster, or write to one, by what the facts say; ``leases``: those that are taken."""

    def nothing(*_: object, **__: object) -> None:
        return None

    @contextmanager
    def unreachable(cluster: Any, client: str) -> Iterator[Any]:
        raise BrokerUnreachable(cluster.alias, "nobody", "it is not asked")
        yield

    @contextmanager
    def answering(*_: object) -> Iterator[Any]:
        yield SimpleNamespace(refresh=nothing, topic_ids={})

    @contextmanager
    def overtaking(opened: Any, *_: object) -> Iterator[Any]:
        leases.append(opened.flow.name)
        its = SimpleNamespace(index=opened.ledger, flow=opened.flow, catch_up=nothing)
        yield SimpleNamespace(journal=its, owners=opened.ledger.owners(), check=nothing)

    @contextmanager
    def session(opened: Any, *_: object) -> Iterator[Any]:
        yield SimpleNamespace(index=opened.ledger, flow=opened.flow)

    @contextmanager
    def journal(flow: Any, index: Any, purpose: str) -> Iterator[Any]:
        yield SimpleNamespace(index=index, flow=flow)

    ends = dict.fromkeys(KEYS, END + 4 * facts.behind)
    written = ["east.bill-0: 4 records were written there after offset 20"] if facts.by_others else []
    replaced: dict[Any, dict[str, Any]] = {
        freezing: {"catch_up_soon": nothing, "Routes": unreachable},
        draining: {
            "catch_up_soon": nothing,
            "Routes": answering,
            "await_still": lambda *_, **__: facts.moving,
            "ends_of": lambda *_: ends,
            "offsets_with_patience": lambda *_: dict.fromkeys(ends, 0),
            "_topics": lambda opened: set(NAMES.values()),
            "_is_leased": lambda opened: False,
            "_last_window": nothing,
            "stopped": nothing,
        },
        failover_steps: {
            "unreachable": lambda opened: "",
            "positions": lambda *_: positions(facts),
            "stays": lambda journal, rows, *_: [""] * len(rows),
            "list_groups": nothing,
            "committed_offsets": nothing,
        },
        migration_steps: {
            "caught_up": lambda opened, soon: opened,
            "chosen_move": lambda opened, name: {SHOP: MOVING, BILL: MOVED}[name],
            "prepare": lambda *_: SimpleNamespace(report=SimpleNamespace(changes=())),
            "Routes": answering,
            "ends_of": lambda *_: ends,
            "plan_topics": nothing,
            "drifts": lambda _: (),
            "copy_access": lambda *_: (),
        },
        rehearsing: {"caught_up": lambda opened, soon: opened, "unreachable": lambda opened: "it is not asked"},
        Pair: {"names": lambda pair, topics=(): _names(facts.owners, topics)},
        failback_pair: {"overtaking": overtaking},
        returning: {
            "divergences": lambda *_: [_divergence(facts)],
            "resetting": SimpleNamespace(look=lambda *_: []),
            "guard": nothing,
            "plan_topics": lambda opened, *_, **__: plan_of_topics(opened.flow, *_topics(facts)),
        },
        failback_steps: {"Routes": answering, "ends_of": lambda *_: {}, "_positions": lambda *_: positions(facts)},
        handback: {"catch_up_ledger": nothing, "written_since": lambda *_: written},
        migration_undo: {
            "session": session,
            "going_back": lambda mirror, move, order, **_: GroupsToPutBack(
                tuple(put_back(mirror, lambda each: each.window == order.window)), (), ()
            ),
            "written_since": lambda *_: written,
            "_members": lambda *_: [],
            "take_back": lambda pair, *_: leases.append(pair.flow.name),
            "unfreeze": nothing,
            "_put_back": lambda *_: migration_undo.NOTHING,
            "moved_again": lambda *_: [],
            "undo_over": nothing,
            "blocking": SimpleNamespace(standing=lambda *_: [], unblock_producers=nothing),
        },
    }
    for undoing in (failover_undo, failback_undo):
        replaced[undoing] = {
            "Journal": SimpleNamespace(open=journal),
            "to_put_back": put_back,
            "put_back": nothing,
            "commit_change": nothing,
            "catch_up_ledger": nothing,
            "MappingWriter": SimpleNamespace(of=nothing),
        }
    replaced[failover_undo] |= {
        "overtaking": overtaking,
        "written_since": lambda *_: written,
        "resume_after_rescues": nothing,
        "moved_again": lambda *_: [],
    }
    replaced[failback_undo] |= {"catch_up_soon": nothing, "write_forgotten": nothing}
    for module, names in replaced.items():
        for name, value in names.items():
            patch.setattr(module, name, value)


def _names(owners: Owners, topics: Sequence[str]) -> dict[str, str]:
    """The remote topics that an order for some topics (none: for the flow) names."""
    return {name: topic for name, topic in NAMES.items() if (topic in topics if topics else not owners.is_apart(topic))}


def _topics(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """The topics of the target and of the source, as their brokers describe them: the source's may stamp what they append."""
    kind = ConfigValue("LogAppendTime" if facts.append_time else "CreateTime", "DYNAMIC_TOPIC_CONFIG")
    made = {name: SimpleNamespace(partitions=1, configs={}) for name in NAMES}
    return made, {topic: SimpleNamespace(partitions=1, configs={TIMESTAMP_TYPE: kind}) for topic in NAMES.values()}


def _divergence(facts: Facts) -> Any:
    """What a partition holds on the source alone."""
    return SimpleNamespace(key="bill-0", never=SimpleNamespace(records=4 * facts.left))


def put_back(journal: Any, ours: Callable[[GroupMove], bool]) -> list[PutBack]:
    """The moves that are to be undone, of groups that stand where they were moved to."""
    return [PutBack(each, each.after, "", "west") for each in journal.index.of_kind(GroupMove) if ours(each)]


def positions(facts: Facts) -> list[GroupPosition]:
    """The position of a group on the source."""
    found = Translated(7, 7, exact=not facts.estimated)
    return [made(GroupPosition, group="g", topic=BILL, partition=0, committed=Committed(7), found=found)]


# What decides, of each order. Each returns that there is nothing to do, or raises what refuses it.


def _leased(facts: Facts) -> None:
    """What all ask that write to remote topics, under the lease."""
    opened = facts.forward
    GrantedLease.check_open(SimpleNamespace(owners=facts.owners, journal=SimpleNamespace(flow=opened.flow)))  # type: ignore[arg-type]


def _failover(facts: Facts) -> bool:
    failover_steps.check_way(facts.forward, PLANNED)
    failover_steps.drain_step(facts.forward, PLANNED)
    return False


def _undo_of_failover(facts: Facts) -> bool:
    return not any(section.rows for section in failover_undo.undo(facts.forward, PLANNED).sections)


def _failback(facts: Facts) -> bool:
    if nothing_left(facts.pair, ORDER):
        return True
    names = returning.returnable(facts.pair, ORDER)
    returning.planned_return(facts.pair.reverse, names)
    ahead: Any = SimpleNamespace(source=SimpleNamespace(refresh_existing=lambda _: set()), flow=facts.forward.flow)
    back: Any = SimpleNamespace(index=facts.pair.reverse.ledger)
    returning._beginnings(ahead, back, names, ORDER)
    begun = replace(facts, owners=changed_by(facts.owners, Change.BEGIN, ()))
    failback_steps.drain_step(begun.pair, ORDER)
    return False


def _undo_of_failback(facts: Facts) -> bool:
    return not any(section.rows for section in failback_undo.undo(facts.pair, ORDER).sections)


def _migration(facts: Facts) -> bool:
    migration_steps.take("mirror", facts.pair, MoveOrder(move=BILL, wait=0.0))
    _ready(facts.forward, MOVED, GroupChecks(positions(facts), (), tuple(not_exact(positions(facts))), ()))
    return False


def _migration_with_return(facts: Facts) -> bool:
    order = MoveOrder(move=BILL, wait=0.0, reverse=True)
    migration_steps.check_order(facts.pair, order)
    return _migration(facts)


def _undo_of_migration(facts: Facts) -> bool:
    order = MoveOrder(move=SHOP, reason="why", by="ada")
    return not migration_undo.undo_move(facts.forward, MOVING, order, lambda phase: None).lines


def _take_over(facts: Facts) -> bool:
    _leased(facts)
    return not facts.by_others


def _hand_back(facts: Facts) -> bool:
    _leased(facts)
    handback.positions(facts.forward)
    handback.check_copied(SimpleNamespace(flow=facts.forward.flow, index=facts.forward.ledger))
    return False


def _rehearsal(facts: Facts) -> bool:
    with suppress(RehearsalNeedsSource):  # what it asks its clusters for is nothing that refuses it
        rehearsing.rehearse(facts.forward)
    return False


def _window(facts: Facts) -> bool:
    _leased(facts)
    state, ids = facts.forward.ledger.state(), dict.fromkeys(NAMES.values(), UUID(int=1))
    remote = {topic: name for name, topic in NAMES.items()}
    for each in plan("east", "mm2-offsets", remote, dict.fromkeys(KEYS, LogExtent(0, END + 4, END + 4)), ids, state):
        if each.error is not None:
            raise each.error
    return False


def _unfreeze(facts: Facts) -> bool:
    to_unfreeze(facts.forward, ())
    check_nothing_returns(facts.forward)
    return False


def _reset(facts: Facts) -> bool:
    _leased(facts)
    return False


MOVING, MOVED = (Move(topic, {topic: f"east.{topic}"}, (), None) for topic in (SHOP, BILL))
DECISIONS: dict[str, Callable[[Facts], bool]] = {
    "failover": _failover,
    "undo of a failover": _undo_of_failover,
    "failback": _failback,
    "undo of a failback": _undo_of_failback,
    "migration": _migration,
    "migration with a return": _migration_with_return,
    "undo of a migration": _undo_of_migration,
    "take-over": _take_over,
    "hand-back": _hand_back,
    "rehearsal": _rehearsal,
    "window": _window,
    "unfreeze": _unfreeze,
    "reset": _reset,
}


def decided(order: str, facts: Facts) -> str:
    """What comes of an order: the name of an error, ``-`` where there is nothing to do, else ``+``."""
    leases: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        no_clusters(patch, facts, leases)
        try:
            is_nothing = DECISIONS[order](facts)
        except AirmirrorError as error:
            return type(error).__name__
    assert not (is_nothing and leases), "a window is ended for nothing"
    return "-" if is_nothing else "+"

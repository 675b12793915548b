"""Procedures that are asked with nothing but facts: what would ask a cluster is replaced, what decides is the product's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from airmirror.offsets.translation import to_target
from airmirror.runbooks import draining
from airmirror.runbooks.failback import pair as failback_pair
from airmirror.runbooks.failback import returning
from airmirror.runbooks.failback import steps as failback_steps
from airmirror.runbooks.failback import undo as failback_undo
from airmirror.runbooks.failback.steps import nothing_left
from airmirror.runbooks.failover import steps as failover_steps
from airmirror.runbooks.failover import undo as failover_undo
from airmirror.runbooks.migration import producers
from airmirror.runbooks.migration import reverse as migration_reverse
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
from airmirror.runbooks.takeover.order import HandbackOrder
from airmirror.topics.configs import TIMESTAMP_TYPE
from airmirror.topics.remote import plan as plan_of_topics
from airmirror.windows.fence import GrantedLease
from airmirror.windows.plan import LogExtent, plan
from airmirror.wire.moves import GroupMove
from airmirror.wire.owners import Change
from pairs.estate import NAMED, WHY
from pairs.facts import AT, BILL, KEYS, SHOP, Facts, changed_by
from pairs.table import sign
from support.failovers import PLANNED
from support.large import made
from support.returns import ORDER

# Clusters that are not asked.


def _nothing(*_: object, **__: object) -> None:
    return None


@contextmanager
def _unreachable(cluster: Any, client: str) -> Iterator[Any]:
    raise BrokerUnreachable(cluster.alias, "nobody", "it is not asked")
    yield


@contextmanager
def _answering(*_: object) -> Iterator[Any]:
    yield SimpleNamespace(refresh=_nothing, topic_ids={})


@contextmanager
def _session(opened: Any, *_: object) -> Iterator[Any]:
    yield SimpleNamespace(index=opened.ledger, flow=opened.flow)


@contextmanager
def _journal(flow: Any, index: Any, purpose: str) -> Iterator[Any]:
    target = SimpleNamespace(refresh_existing=lambda _: set(), partitions=lambda _: 1)
    yield SimpleNamespace(index=index, flow=flow, target=target)


@contextmanager
def _mirrors(pair: Any) -> Iterator[tuple[Any, Any]]:
    cluster = SimpleNamespace(refresh_existing=lambda _: set())
    ahead, back = (
        SimpleNamespace(source=cluster, flow=its.flow, index=its.ledger) for its in (pair.forward, pair.reverse)
    )
    yield ahead, back


@contextmanager
def _appending(*_: object) -> Iterator[Any]:
    yield SimpleNamespace(append=_nothing)


def no_clusters(patch: pytest.MonkeyPatch, facts: Facts, leases: list[str]) -> None:
    """Replace all that would ask a cluster, or write to one, by what the facts say; ``leases``: the flows whose is taken."""

    @contextmanager
    def overtaking(opened: Any, *_: object) -> Iterator[Any]:
        leases.append(opened.flow.name)
        its = SimpleNamespace(index=opened.ledger, flow=opened.flow, catch_up=_nothing)
        yield SimpleNamespace(journal=its, owners=opened.ledger.owners(), check=_nothing)

    @contextmanager
    def leased(journal: Any, *_: object, **__: object) -> Iterator[Any]:
        leases.append(journal.flow.name)
        granted: Any = SimpleNamespace(journal=journal, owners=journal.index.owners(), check=_nothing)
        GrantedLease.check_open(granted)
        yield granted

    ends = dict.fromkeys(KEYS, facts.end + 4 * facts.behind)
    written = ["east.bill-0: 4 records were written there after offset 20"] if facts.by_others else []
    places = {topic: Move(topic, {topic: facts.remote[topic]}, (), None) for topic in (SHOP, BILL)}
    replaced: dict[Any, dict[str, Any]] = {
        freezing: {
            "catch_up_soon": _nothing,
            "catch_up_ledger": _nothing,
            "ensure_internal_topics": _nothing,
            "commit_change": _nothing,
            "Routes": _unreachable,
            "overtaking": overtaking,
        },
        draining: {
            "catch_up_soon": _nothing,
            "Routes": _answering,
            "await_still": lambda *_, **__: facts.moving,
            "ends_of": lambda *_: ends,
            "offsets_with_patience": lambda *_: dict.fromkeys(ends, 0),
            "_topics": lambda opened: {SHOP, BILL},
            "_is_leased": lambda opened: opened.flow.name == facts.follows,
            "_last_window": _nothing,
            "stopped": _nothing,
        },
        failover_steps: {
            "unreachable": lambda opened: "",
            "positions": lambda *_: positions(facts),
            "stays": lambda journal, rows, *_: [""] * len(rows),
            "list_groups": _nothing,
            "committed_offsets": _nothing,
        },
        migration_steps: {
            "caught_up": lambda opened, soon: opened,
            "chosen_move": lambda opened, name: places[name],
            "prepare": lambda *_: SimpleNamespace(report=SimpleNamespace(changes=())),
            "Routes": _answering,
            "ends_of": lambda *_: ends,
            "plan_topics": _nothing,
            "drifts": lambda _: (),
            "copy_access": lambda *_: (),
            "check_blocked": _nothing,
            "begin": lambda *_: (),  # once its topics are frozen
        },
        producers: {
            "not_cut_over": lambda *_: [],
            "await_empty": _nothing,
            "blocking": SimpleNamespace(block_producers=lambda *_: []),
            "Routes": _answering,
            "ends_of": lambda *_: ends,
        },
        migration_reverse: {"give_up": _nothing},
        rehearsing: {"caught_up": lambda opened, soon: opened, "unreachable": lambda opened: "it is not asked"},
        failback_pair: {
            "overtaking": overtaking,
            "plan_topics": lambda opened, **_: SimpleNamespace(topics=facts.remote),
        },
        returning: {
            "divergences": lambda *_: [_divergence(facts)],
            "resetting": SimpleNamespace(look=lambda *_: []),
            "guard": _nothing,
            "plan_topics": lambda opened, *_, **__: plan_of_topics(opened.flow, *_topics(facts)),
            "ensure_internal_topics": _nothing,
            "introduce": _nothing,
            "apply": lambda *_: SimpleNamespace(errors=()),
            "_mirrors": _mirrors,
            "commit_change": _nothing,
            "catch_up_ledger": _nothing,
        },
        failback_steps: {"Routes": _answering, "ends_of": lambda *_: {}, "_positions": lambda *_: positions(facts)},
        handback: {
            "catch_up_ledger": _nothing,
            "written_since": lambda *_: written,
            "Journal": SimpleNamespace(open=_journal),
            "leased": leased,
            "fence_around": _nothing,
            "Appender": _appending,
            "do_tasks": lambda *_: [],
        },
        migration_undo: {
            "session": _session,
            "going_back": lambda mirror, move, order, **_: GroupsToPutBack(
                tuple(_put_back(mirror, lambda each: each.window == order.window)), (), ()
            ),
            "written_since": lambda *_: written,
            "_members": lambda *_: [],
            "unfreeze": lambda opened, *_, **__: leases.append(opened.flow.name),  # as the order to unfreeze does
            "_put_back": lambda *_: migration_undo.NOTHING,
            "moved_again": lambda *_: [],
            "undo_over": _nothing,
            "blocking": SimpleNamespace(standing=lambda *_: [], unblock_producers=_nothing),
        },
    }
    for undoing in (failover_undo, failback_undo):
        replaced[undoing] = {
            "Journal": SimpleNamespace(open=_journal),
            "to_put_back": _put_back,
            "put_back": _nothing,
            "commit_change": _nothing,
            "catch_up_ledger": _nothing,
            "MappingWriter": SimpleNamespace(of=_nothing),
        }
    replaced[failover_undo] |= {
        "overtaking": overtaking,
        "written_since": lambda *_: written,
        "resume_after_rescues": _nothing,
        "moved_again": lambda *_: [],
    }
    replaced[failback_undo] |= {"catch_up_soon": _nothing, "write_forgotten": _nothing}
    for module, names in replaced.items():
        for name, value in names.items():
            patch.setattr(module, name, value)


def _topics(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """The topics of the target and of the source, as their brokers describe them: the source's may stamp what they append."""
    kind = ConfigValue("LogAppendTime" if facts.append_time else "CreateTime", "DYNAMIC_TOPIC_CONFIG")
    there = {name: SimpleNamespace(partitions=1, configs={}) for name in facts.names}
    return there, {topic: SimpleNamespace(partitions=1, configs={TIMESTAMP_TYPE: kind}) for topic in facts.remote}


def _divergence(facts: Facts) -> Any:
    """What a partition holds on the source alone."""
    return SimpleNamespace(key="bill-0", never=SimpleNamespace(records=4 * facts.left))


def _put_back(journal: Any, ours: Callable[[GroupMove], bool]) -> list[PutBack]:
    """The moves that are to be undone, of groups that stand where they were moved to."""
    return [PutBack(each, each.after, "", "west") for each in journal.index.of_kind(GroupMove) if ours(each)]


def positions(facts: Facts) -> list[GroupPosition]:
    """The position of a group on the source, and where the product finds it on the target."""
    found = to_target(facts.replicated, AT)
    return [made(GroupPosition, group="g", topic=BILL, partition=0, committed=Committed(AT), found=found)]


# What decides, of each order. Each returns that there is nothing to do, or raises what refuses it.


def _leased(facts: Facts) -> None:
    """What all ask that write to remote topics, under the lease."""
    opened = facts.forward
    GrantedLease.check_open(SimpleNamespace(owners=facts.owners, journal=SimpleNamespace(flow=opened.flow)))  # type: ignore[arg-type]


def _failover(facts: Facts) -> bool:
    failover_steps.check_way(facts.forward, PLANNED)
    failover_steps.drain_step(facts.forward, PLANNED)
    failover_steps.freeze_step(facts.forward, PLANNED)
    return False


def _undo_of_failover(facts: Facts) -> bool:
    return not any(section.rows for section in failover_undo.undo(facts.forward, PLANNED).sections)


def _failback(facts: Facts) -> bool:
    if nothing_left(facts.pair, ORDER):
        return True
    failback_steps.return_step(facts.pair, ORDER)
    begun = replace(facts, owners=changed_by(facts.owners, Change.BEGIN, (), facts.names))
    failback_steps.drain_step(begun.pair, ORDER)
    return False


def _undo_of_failback(facts: Facts) -> bool:
    return not any(section.rows for section in failback_undo.undo(facts.pair, ORDER).sections)


def _migration(facts: Facts, *, back: bool = False) -> bool:
    order = MoveOrder(move=BILL, wait=0.0, reverse=back, **WHY)
    migration_steps.check_order(facts.pair, order)
    migration_steps.take("mirror", facts.pair, order)
    move = Move(BILL, {BILL: facts.remote[BILL]}, (), None)
    _ready(facts.forward, move, GroupChecks(positions(facts), (), tuple(not_exact(positions(facts))), ()))
    migration_steps.take("cut_over_producers", facts.pair, order)
    return False


def _migration_with_return(facts: Facts) -> bool:
    return _migration(facts, back=True)


def _undo_of_migration(facts: Facts) -> bool:
    order, move = MoveOrder(move=SHOP, **WHY), Move(SHOP, {SHOP: facts.remote[SHOP]}, (), None)
    reverse = facts.pair.reverse_or_none
    return not migration_undo.undo_move(facts.forward, move, order, lambda phase: None, reverse).lines


def _take_over(facts: Facts) -> bool:
    _leased(facts)
    return not facts.by_others


def _hand_back(facts: Facts) -> bool:
    handback.write_offsets(facts.forward, HandbackOrder(into="connect-offsets", **WHY))
    return False


def _rehearsal(facts: Facts) -> bool:
    with suppress(RehearsalNeedsSource):  # what it asks its clusters for is nothing that refuses it
        rehearsing.rehearse(facts.forward)
    return False


def _window(facts: Facts) -> bool:
    _leased(facts)
    state, ids = facts.forward.ledger.state(), dict.fromkeys(facts.remote, UUID(int=1))
    new = facts.end + 4
    extents = dict.fromkeys(KEYS, LogExtent(0, new, new))
    for each in plan("east", "mm2-offsets", facts.remote, extents, ids, state):
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


def decided(order: str, facts: Facts, plain: str = "+") -> str:
    """What comes of an order, as a cell has it; ``plain``: what came of it where no other procedure had run."""
    leases: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        no_clusters(patch, facts, leases)
        try:
            is_nothing = DECISIONS[order](facts)
        except AirmirrorError as error:
            return type(error).__name__
    assert not (is_nothing and leases), "a window is ended for nothing"
    ends = facts.follows in leases
    return sign("-" if is_nothing else "+", order, facts.owners, NAMED.get(order, ""), plain, ends=ends)

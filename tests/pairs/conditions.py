"""How things can be when a procedure is ordered: ``CONDITIONS``, each with how its estate is made and what happens besides.

``PROOFS`` look at what came of each procedure there, with other clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from airmirror.errors import AirmirrorError
from airmirror.flows.freezing import freeze
from airmirror.flows.holds import add_holds
from airmirror.flows.prepare import Opened, prepare
from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.windows.fence import end_window
from airmirror.windows.resets import Choice
from airmirror.windows.window import WindowOrder, run_window
from airmirror.wire.leases import LeaseEntry, holder
from offsets.test_groups import COMPACTED
from pairs.estate import COUNT, OTHERS, WHY, Estate, copied_by_mirrormaker, numbered
from support.flows import at_once
from support.following import FOLLOW, SETTINGS, patiently
from support.returns import FORWARD, REVERSE
from support.topics import Record, create_topic, open_transaction, produce

THEIRS = "theirs"  # a topic of the target that the reverse flow replicates anyway
HasEnded = Callable[[], bool]  # whether the order has ended a window that was at work
Meanwhile = Callable[[Estate, str], AbstractContextManager[HasEnded]]
# Orders of a flow that is failed over: applications write on the target, and only the reverse flow copies.
ON_TARGET = {"undo of a failover", "failback", "undo of a failback"}


def none_at_work() -> bool:
    return False


def _nothing(estate: Estate, order: str) -> AbstractContextManager[HasEnded]:
    return nullcontext(none_at_work)


@dataclass(frozen=True)
class Condition:
    """``words``: of a table. ``built``: how its estate is made; ``before``: what people have done when all is still well;
    ``meanwhile``: what is so while the procedure is carried out. ``prepared``: states other than the usual ones (PREPARED)."""

    words: str
    built: Mapping[str, Any] = field(default_factory=dict)
    before: Callable[[Estate], None] = lambda estate: None
    meanwhile: Meanwhile = _nothing
    prepared: Mapping[str, str] = field(default_factory=dict)


def _frozen(estate: Estate) -> None:
    freeze(estate.both.forward, [estate.bill], **WHY)


def _reset(estate: Estate) -> None:
    carry_out(estate.both.forward, ResetOrder((estate.bill,), (), Choice.START_AGAIN, recreate=True, **WHY))
    if estate.both.forward.ledger.last_mappings():
        estate.both.window(estate.both.forward)


@contextmanager
def _held(estate: Estate, order: str) -> Iterator[HasEnded]:
    add_holds(estate.both.forward, estate.bill, [0], **WHY)
    estate.write(estate.both.east, estate.bill, first=COUNT)
    yield none_at_work


@contextmanager
def _open(estate: Estate, order: str) -> Iterator[HasEnded]:
    """An application's transaction is open where applications write."""
    side = estate.both.west if order in ON_TARGET else estate.both.east
    topic = estate.bill if side is estate.both.east else estate.names[estate.bill]
    if order == "undo of a migration":
        side, topic = estate.both.west, estate.names[estate.shop]
    with open_transaction(side, topic, numbered(3, 200), partition=0):
        yield none_at_work


def _of_others(estate: Estate, name: str) -> None:
    """Another source's records come into the remote topics."""
    for remote in estate.names.values():
        produce(estate.both.west, remote, [Record(OTHERS + b"-%s-%d" % (name.encode(), each)) for each in range(3)])


def _among_others(estate: Estate) -> None:
    """The copies of other sources lie between those of the flow."""
    _of_others(estate, "between")
    estate.write(estate.both.east, estate.shop, estate.bill, first=COUNT)
    if estate.both.forward.ledger.last_mappings():
        assert estate.both.window(estate.both.forward).is_verified
    else:
        copied_by_mirrormaker(estate, COUNT)


@contextmanager
def _beside_others(estate: Estate, order: str) -> Iterator[HasEnded]:
    """Other sources are copied meanwhile; but a take-over wants the flow's own copies at the end (TailDiffers)."""
    if order != "take-over":
        _of_others(estate, "since")
    yield none_at_work


@contextmanager
def _followed(estate: Estate, order: str) -> Iterator[HasEnded]:
    """A window follows, of the flow that copies then. It ends when another one wants its lease, or is ended from outside."""
    opened = estate.both.reverse if order in ON_TARGET else estate.both.forward
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(_follow, opened)
        for attempt in patiently():
            with attempt:
                leases = estate.both.now(opened).ledger.leases()
                assert following.running() and "follows" in {lease.window for _, _, lease in leases}
        try:
            yield lambda: _has_ended(estate.both.now(opened), following)
        finally:
            end_window(opened.flow, opened.ledger, "follows")  # where the order has left it at work
            with suppress(AirmirrorError):
                following.result()


def _has_ended(opened: Opened, following: Future[None]) -> bool:
    """Return whether the window that followed has lost its lease, and is over then; else it is at work."""
    held = holder([LeaseEntry(*each) for each in opened.ledger.leases()], compacted=True)
    assert held is not None
    has_lost = held.released or held.lease.window != "follows"
    if has_lost:
        wait([following], 60)
    assert following.done() is has_lost
    return has_lost


def _follow(opened: Opened) -> None:
    prepared = prepare(opened)
    order = WindowOrder("follows", slots=lambda _: 1, following=FOLLOW)
    run_window(prepared.opened.flow, opened.ledger, prepared.topics, at_once, order)


def _written_on_both(estate: Estate) -> None:
    produce(estate.both.west, create_topic(estate.both.west, THEIRS, 1), numbered(3))


CONDITIONS: dict[str, Condition] = {
    "following": Condition(
        "a window follows the log",
        {"settings": SETTINGS | {f"{REVERSE}.topics": THEIRS}},
        before=_written_on_both,
        meanwhile=_followed,
    ),
    "frozen": Condition("a topic is frozen by its name", before=_frozen),
    "held": Condition("a partition is held, and grows", meanwhile=_held),
    "reset": Condition("a topic was reset, and its remote topic made again", before=_reset),
    "one-way": Condition(
        "the reverse flow is disabled", {"has_reverse": False}, prepared={"undo of a failback": "failover"}
    ),
    "compacted": Condition("its topics are compacted", {"config": COMPACTED, "is_cleaned": True}),
    "append time": Condition(
        "its topics have LogAppendTime",
        {"config": {"message.timestamp.type": "LogAppendTime"}},
        prepared={"undo of a failback": "failover"},
    ),
    "transactional": Condition("its records are of transactions", {"transactional": "commit"}),
    "open": Condition("a transaction is open where applications write", meanwhile=_open),
    "aggregate": Condition(
        "it is an aggregate",
        {"settings": {f"{FORWARD}.aggregate": "true"}},
        before=_among_others,
        meanwhile=_beside_others,
        prepared={"undo of a failback": "failover"},
    ),
    "prefix": Condition("remote topics have the source's prefix", {"policy": "default"}),
    "identity": Condition("remote topics have the same names", {"policy": "identity"}),
}

# Where a procedure begins, of STATES: most where all is replicated.
PREPARED = {
    "undo of a failover": "failover",
    "failback": "failover",
    "undo of a failback": "return",
    "undo of a migration": "producers",
}
WRITTEN_BEFORE = {"failback"}  # by applications, on the target

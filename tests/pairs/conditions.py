"""How things can be when a procedure is ordered: ``CONDITIONS``, each with how its estate is made and what happens besides.

``PROOFS`` look at what came of each procedure there, with other clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
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
from pairs.estate import COUNT, WHY, Estate, numbered
from support.flows import at_once
from support.following import FOLLOW, SETTINGS, patiently
from support.returns import FORWARD, REVERSE
from support.topics import create_topic, open_transaction, produce

THEIRS = "theirs"  # a topic of the target that the reverse flow replicates anyway
Meanwhile = Callable[[Estate, str], AbstractContextManager[None]]
# Orders of a flow that is failed over: applications write on the target, and only the reverse flow copies.
FAILED_OVER = {"undo of a failover", "failback", "undo of a failback"}


def _nothing(estate: Estate, order: str) -> AbstractContextManager[None]:
    return nullcontext()


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
def _held(estate: Estate, order: str) -> Iterator[None]:
    add_holds(estate.both.forward, estate.bill, [0], **WHY)
    estate.write(estate.both.east, estate.bill, first=COUNT)
    yield


@contextmanager
def _open(estate: Estate, order: str) -> Iterator[None]:
    """An application's transaction is open where applications write."""
    side = estate.both.west if order in FAILED_OVER else estate.both.east
    topic = estate.bill if side is estate.both.east else estate.names[estate.bill]
    if order == "undo of a migration":
        side, topic = estate.both.west, estate.names[estate.shop]
    with open_transaction(side, topic, numbered(3, 200), partition=0):
        yield


@contextmanager
def _followed(estate: Estate, order: str) -> Iterator[None]:
    """A window follows, of the flow that copies then. It ends when another one wants its lease, or is ended from outside."""
    opened = estate.both.reverse if order in FAILED_OVER else estate.both.forward
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(_follow, opened)
        for attempt in patiently():
            with attempt:
                leases = estate.both.now(opened).ledger.leases()
                assert following.running() and "follows" in {lease.window for _, _, lease in leases}
        yield
        end_window(opened.flow, opened.ledger, "follows")  # where the order has left it at work
        with suppress(AirmirrorError):
            following.result()


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
    "compacted": Condition("its topics are compacted", {"config": {"cleanup.policy": "compact"}}),
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

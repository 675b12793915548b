"""The two flows of a failback: the one that was failed over, and the reverse flow, by which records return."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from airmirror.config import Flow
from airmirror.errors import AirmirrorError, command
from airmirror.flows.freezing import overtaking, owners_now, taken
from airmirror.flows.prepare import Opened, caught_up, plan_topics
from airmirror.runbooks.runbook import OpenFlow, Order
from airmirror.tell import Tell
from airmirror.windows.fence import GrantedLease
from airmirror.wire.moves import FAILBACK, GroupMove


def lease_name() -> str:
    return f"{FAILBACK}{uuid.uuid4().hex[:12]}"


class NoReverseFlow(AirmirrorError):
    """A failback without an enabled reverse flow."""

    flow: str
    reverse: str
    says = (
        "flow {0.flow!r}: its records return by flow {0.reverse!r}, which is not enabled: add `{0.reverse}.enabled = true`, with "
        "`{0.reverse}.topics` of what else it is to replicate; then ask {airmirror:failback plan}"
    )


class NothingReturns(AirmirrorError, bad_input=True):
    """A failback of topics of which the flow has replicated nothing."""

    flow: str
    topics: tuple[str, ...]

    def __str__(self) -> str:
        which, plan = ", ".join(self.topics) or "any topic", command("failback", "plan", flow=self.flow)
        return f"flow {self.flow!r} has replicated nothing of {which}: {plan} shows what it has"


def check_known(forward: Opened, topics: Collection[str]) -> None:
    """Raise NothingReturns for topics of which the flow has replicated nothing: they can't be frozen either."""
    if strangers := set(topics) - {topic for topic, _ in forward.ledger.state().known}:
        raise NothingReturns(forward.flow.name, tuple(sorted(strangers)))


@dataclass(frozen=True)
class Pair:
    """``forward`` was failed over; ``reverse_or_none`` leads from its target to its source, None: it is not enabled."""

    forward: Opened
    reverse_or_none: Opened | None

    @property
    def flow(self) -> Flow:
        return self.forward.flow

    @property
    def others(self) -> list[Flow]:
        return [] if self.reverse_or_none is None else [self.reverse_or_none.flow]

    @property
    def reverse(self) -> Opened:
        """The reverse flow. Raises NoReverseFlow."""
        if self.reverse_or_none is None:
            raise NoReverseFlow(self.flow.name, self.flow.reverse_name)
        return self.reverse_or_none

    def names(self, topics: Collection[str] = ()) -> dict[str, str]:
        """The remote topics that can return, each with the topic of the source that it was brought from.

        ``topics``: of the source, none: all that an order for the whole flow takes.
        The ledger has caught up. Raises NothingReturns, and what guards the clusters.
        """
        ledger = self.forward.ledger
        known = {topic for topic, _ in ledger.state().known}
        last = [each for each in ledger.last_mappings().values() if each.topic in known]
        planned = plan_topics(self.forward, frozen_too=True).topics
        every = {**planned, **{each.topic: each.remote_topic for each in last}}
        brought = {remote: topic for topic, remote in every.items()}
        ours = taken(self.forward.flow, ledger.owners(), brought.values(), topics)
        found = {remote: topic for remote, topic in brought.items() if topic in ours}
        if not found or set(topics) - set(found.values()):
            raise NothingReturns(self.forward.flow.name, tuple(sorted(set(topics) - set(found.values()))))
        return found

    def returning(self, topics: Collection[str] = ()) -> dict[str, str]:
        """The remote topics that return now, or have returned, and whose flow is not unfrozen yet, each with the topic of the
        source, of those that an order for ``topics`` names; none: for the whole flow."""
        return owners_now(self.forward).returning_by(topics)

    def now(self) -> Pair:
        """Return the same when both ledgers have read what is new: what returns is as it was decided by now."""
        forward = caught_up(self.forward, soon=True)  # first: it says what returns
        return Pair(forward, caught_up(self.reverse, soon=True))


def moved_by(pair: Pair, names: Mapping[str, str], topics: Collection[str]) -> Callable[[GroupMove], bool]:
    """Return which groups a failback for ``topics`` (none: for the flow) has moved: where ``names`` return to; by that for the
    flow, as its failover, also in topics that came from the target."""
    into, own = set(names.values()), {topic for topic, _ in pair.forward.ledger.state().known}
    besides = bool(names) and not topics
    return lambda each: each.window.startswith(FAILBACK) and (each.topic in into or (besides and each.topic not in own))


@contextmanager
def both_leased(pair: Pair, tell: Tell) -> Iterator[tuple[GrantedLease, GrantedLease]]:
    """Hold the leases of both flows, as ``overtaking`` does: first that of the flow that was failed over."""
    with (
        overtaking(pair.forward, lease_name(), tell) as frozen,
        overtaking(pair.reverse, lease_name(), tell) as granted,
    ):
        yield frozen, granted


@contextmanager
def opens_pair(open_flow: OpenFlow, order: Order) -> Iterator[Pair]:
    with open_flow("") as forward:
        if not forward.configuration.has_reverse(forward.flow):
            yield Pair(forward, None)
            return
        with open_flow(forward.flow.reverse_name) as reverse:
            yield Pair(forward, reverse)

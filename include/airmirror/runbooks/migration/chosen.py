"""A move group of the configuration as both clusters have it now: its topics with their remote topics, its consumer groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from airmirror.clusters.protocol.groups import committed_offsets
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.stable import all_groups
from airmirror.errors import AirmirrorError, command
from airmirror.flows.prepare import Opened, catch_up_ledger, plan_topics
from airmirror.naming import TopicFilter
from airmirror.runbooks.errors import RunbookError
from airmirror.runbooks.migration.moving import chosen_names
from airmirror.topics.names import policy_of
from airmirror.windows.mirror import Mirror

PURPOSE = "migration"  # a part of client ids


class NoSuchMove(AirmirrorError, bad_input=True):
    """A move group that the configuration does not name."""

    flow: str
    move: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        plan = command("migration", "plan", flow=self.flow)
        known = f", but {', '.join(self.known)}" if self.known else ""
        return (
            f"flow {self.flow!r}: the configuration names no move group {self.move!r}{known}; "
            f"set {self.flow}.move.<name>.topics: {plan} proposes which"
        )


class MoveRefused(RunbookError):
    """A step of a migration that is not taken of a move group as things are."""

    move: str


class MoveGroupUnfit(MoveRefused):
    """A move group with topics that the flow can't replicate, or without any."""

    says = "move group {0.move!r} can't move; {airmirror:topics} says more"


@dataclass(frozen=True)
class Move:
    """What moves: topics of the source with their ``names`` on the target, and consumer ``groups``.

    ``principals``: as configured, None: those that ACLs name.
    """

    name: str
    names: Mapping[str, str]
    groups: tuple[str, ...]
    principals: tuple[str, ...] | None


def chosen_move(opened: Opened, name: str) -> Move:
    """Look for what the configuration names, and for the groups that read it where it names none.

    Raises NoSuchMove, MoveGroupUnfit, CoordinatorNotAvailable, GroupsNotRead, InvalidPattern, and what planning topics raises.
    """
    flow = opened.flow
    configured = {each.name: each for each in flow.moves}
    if name not in configured:
        raise NoSuchMove(flow.name, name, tuple(configured))
    chosen = configured[name]
    before = flow.moves[: flow.moves.index(chosen)]  # what two name is the first one's, as in the plan
    patterns = TopicFilter(chosen.topics, tuple(each for move in before for each in move.topics))
    planned = plan_topics(opened, frozen_too=True)
    beats = policy_of(flow).is_heartbeats_topic  # they never end, and are the flow's own
    names = {topic: each for topic, each in planned.topics.items() if patterns.matches(topic) and not beats(topic)}
    refused = [str(each) for each in planned.refused if patterns.matches(each.topic)]
    if refused or not names:
        reasons = refused or [f"the flow replicates none of {', '.join(chosen.topics)}"]
        raise MoveGroupUnfit(flow.name, tuple(reasons), name)
    followed = TopicFilter(flow.settings.groups, flow.settings.groups_exclude)
    with Routes(flow.source, f"airmirror|{flow.name}|{PURPOSE}") as source:
        there = sorted(all_groups(source))
        known = there if chosen.groups is not None else [each for each in there if followed.matches(each)]
        reading = {
            group: frozenset(key.topic for key in offsets)
            for group, offsets in (committed_offsets(source, known) if chosen.groups is None else {}).items()
        }
    groups = chosen_names(chosen.groups, known, reading, set(names))
    return Move(name, names, groups, chosen.principals)


@contextmanager
def session(opened: Opened) -> Iterator[Mirror]:
    """A session at both clusters, when the ledger has read what is new, if there is anything yet."""
    catch_up_ledger(opened)
    with Mirror.open(opened.flow, opened.ledger, PURPOSE) as mirror:
        yield mirror

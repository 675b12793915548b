"""A fence around a move group's topics on the source: producers are refused there, until it is taken down.

What was there before is written to the segment topic first, so that whoever is killed and runs again takes down what was put
up, and nothing else. Airmirror's own copies are not kept back: they are read.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from airmirror.clusters.admin.acls import Acl, create_acls, delete_acls, topic_acls, writable_topics
from airmirror.clusters.admin.client import Admin, connect
from airmirror.clusters.protocol.described import acl_bindings
from airmirror.errors import command
from airmirror.flows.prepare import Opened
from airmirror.runbooks.errors import RunbookError
from airmirror.runbooks.migration.chosen import Move, session
from airmirror.runbooks.migration.moving import covers, principals_of
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.moving import unclaimed
from airmirror.topics.internal import ensure_internal_topics
from airmirror.windows.mirror import Mirror
from airmirror.wire.switches import Fence

ANY_HOST = "*"
KNOWN_SECONDS = 2.0  # for ACLs to be known to all brokers
_WRITE = frozenset({"WRITE", "ALL"})


@dataclass(eq=False)
class FenceRefused(RunbookError):
    """A fence that a cluster does not let this user put up or take down, or that would keep no producer out."""

    cluster: str

    @property
    def what(self) -> str:
        return (
            f"the fence on {self.cluster!r} could not be changed; if you can stop every producer yourself, set "
            "move.fence = none"
        )


def put_up(opened: Opened, move: Move, order: MoveOrder) -> list[str]:
    """Put up the fence that ``move.fence`` wants, as far as it is not there; what there is, in words, one each.

    Raises FenceRefused, NoAuthorizer, or a cluster's error. A fence that would keep out this user itself, who is to copy back, is
    taken down again.
    """
    flow = opened.flow
    if flow.settings.move_fence == "none":
        return []
    admin = connect(flow.source)
    ensure_internal_topics(flow)
    with session(opened) as mirror:
        there = {(each.topic, each.principal) for each in standing(mirror, move)}
        now_ms = int(time.time() * 1000)
        new = [
            Fence(topic=topic, principal=who, move=move.name, time_ms=now_ms, by=order.by)
            for topic, who in _wanted(mirror, admin, move)
            if (topic, who) not in there
        ]
        with unclaimed(mirror, order.window) as pen:
            pen.write([(each.encode_key(), each.encode_value()) for each in new])
        mirror.catch_up()
        fences = standing(mirror, move)
        _raise_refused(opened, _put(admin, fences))
        if order.goes_back(flow):
            try:
                way_out = f"set {flow.name}.move.{move.name}.principals to those of its applications"
                _check_own_right(admin, flow.name, move, way_out)
            except FenceRefused:
                take_down(opened, move, order)
                raise
    return list(map(str_of, fences))


def check_standing(opened: Opened, move: Move) -> None:
    """Raise FenceRefused where a fence that stands keeps out this user, who is to copy back what is written on the target."""
    with session(opened) as mirror:
        stands = standing(mirror, move)
    if stands:
        way_out = f"when its producers are stopped, take it down: {down(opened.flow.name, move.name)}"
        _check_own_right(connect(opened.flow.source), opened.flow.name, move, way_out)


def take_down(opened: Opened, move: Move, order: MoveOrder) -> list[Fence]:
    """Take down what was put up around these topics, as it was before. Raises FenceRefused, or a cluster's error."""
    with session(opened) as mirror:
        fences = standing(mirror, move)
        if fences:
            _raise_refused(opened, _take(connect(opened.flow.source), fences))
            with unclaimed(mirror, order.window) as pen:
                pen.write([(each.encode_key(), None) for each in fences])
            mirror.catch_up()
    return fences


def standing(mirror: Mirror, move: Move) -> list[Fence]:
    """Return the fences around the topics of a move group, by the ledger, which must have caught up."""
    return [each for each in mirror.index.of_kind(Fence) if each.topic in move.names]


def str_of(fence: Fence) -> str:
    """A fence in words."""
    return f"{fence.topic}: {fence.principal} is denied WRITE"


def down(flow: str, move: str) -> str:
    """The command that takes a fence down, and nothing else."""
    return command("migration", "undo", "--move", move, "--fence", "--reason", "…", "--yes", flow=flow)


def _wanted(mirror: Mirror, admin: Admin, move: Move) -> list[tuple[str, str]]:
    """The principals to be denied, by topic; none of those that others have denied. Raises NoAuthorizer, FenceRefused."""
    there, bindings, flow = topic_acls(admin), acl_bindings(mirror.source) or (), mirror.flow
    ours = {(each.topic, each.principal) for each in standing(mirror, move)}
    whom = principals_of(bindings, move.names, _WRITE) if move.principals is None else move.principals
    wrong = [] if whom else [f"no ACL names who may write; set {flow.name}.move.{move.name}.principals"]
    # Where no ACL is found everybody may (allow.everyone.if.no.acl.found): with the first one nobody may even read.
    allowed = [each for each in bindings if each.resource == "TOPIC" and each.permission == "ALLOW"]
    bare = [topic for topic in move.names if not any(covers(each, topic) for each in allowed)]
    wrong += [
        f"{topic}: no ACL allows anything there; a first one, which denies, would shut out readers" for topic in bare
    ]
    if wrong:
        raise FenceRefused(flow.name, tuple(wrong), flow.source.alias)
    wanted = [(topic, who) for topic in move.names for who in whom]
    return [each for each in wanted if each in ours or _denial(*each) not in there]


def _put(admin: Admin, fences: Sequence[Fence]) -> list[str]:
    denials = {_denial(each.topic, each.principal) for each in fences}
    return [str(each) for each in create_acls(admin, sorted(denials - topic_acls(admin)))[1]] if denials else []


def _take(admin: Admin, fences: Sequence[Fence]) -> list[str]:
    return list(map(str, delete_acls(admin, [_denial(each.topic, each.principal) for each in fences])))


def _denial(topic: str, principal: str) -> Acl:
    return Acl(topic, "LITERAL", principal, ANY_HOST, "WRITE", "DENY")


def _raise_refused(opened: Opened, reasons: Sequence[str]) -> None:
    if reasons:
        raise FenceRefused(opened.flow.name, tuple(reasons), opened.flow.source.alias)


def _check_own_right(admin: Admin, flow: str, move: Move, way_out: str) -> None:
    """Raise FenceRefused where the fence keeps out Airmirror's own user, who is to copy back what is written on the target.

    No request says who this user is; what it may do is asked until every broker has had the time to know the new ACLs.
    """
    until = time.monotonic() + KNOWN_SECONDS
    while time.monotonic() < until:
        if denied := sorted(move.names.keys() - writable_topics(admin, tuple(move.names))):
            reasons = [f"{topic}: this user, who copies back, is denied WRITE by it; {way_out}" for topic in denied]
            raise FenceRefused(flow, tuple(reasons), admin.cluster.alias)
        time.sleep(KNOWN_SECONDS / 10)  # nothing tells when a broker has heard of an ACL

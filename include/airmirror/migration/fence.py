"""A fence around a move group's topics on the source: producers are refused there, until it is taken down.

What was there before is written to the segment topic first, so that whoever is killed and runs again takes down what was put
up, and nothing else. Airmirror's own copies are not kept back: they are read.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from airmirror.clusters.admin.acls import Acl, create_acls, delete_acls, topic_acls, writable_topics
from airmirror.clusters.admin.alteration import alter_configs
from airmirror.clusters.admin.client import Admin, connect, topic_configs
from airmirror.clusters.admin.description import ConfigChange
from airmirror.clusters.protocol.described import acl_bindings
from airmirror.clusters.protocol.producers import active_producers, known_transactions, producers_by_id
from airmirror.errors import AirmirrorError, command, listed
from airmirror.flows.moving import unclaimed
from airmirror.flows.prepare import Opened
from airmirror.migration.chosen import Move, session
from airmirror.migration.moving import covers, principals_of
from airmirror.migration.order import MoveOrder
from airmirror.partitions import TopicPartition
from airmirror.topics.configs import FENCE, LARGEST
from airmirror.topics.internal import ensure_internal_topics
from airmirror.windows.mirror import Mirror
from airmirror.wire.switches import Fence

ANY_HOST = "*"
KNOWN_SECONDS = 2.0  # for ACLs to be known to all brokers
_WRITE = frozenset({"WRITE", "ALL"})


@dataclass(eq=False)
class FenceRefused(AirmirrorError):
    """A fence that a cluster does not let this user put up or take down, or that nobody would be kept out by."""

    flow: str
    cluster: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"flow {self.flow!r}: the fence on {self.cluster!r} could not be changed; set move.fence = none to go without one, "
            f"where all producers can be stopped\n{listed(self.reasons)}"
        )


@dataclass(eq=False)
class FenceHangs(AirmirrorError):
    """Transactional producers of topics that ``move.fence = topic`` would fence. No fence is up."""

    flow: str
    producers: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"flow {self.flow!r}: move.fence = topic keeps out the markers that end transactions too: one that was acknowledged "
            f"would stay open, also when the fence is gone; take move.fence = acl for these producers\n{listed(self.producers)}"
        )


def put_up(opened: Opened, move: Move, order: MoveOrder) -> list[str]:
    """Put up the fence that ``move.fence`` wants, as far as it is not there; what there is, in words, one each.

    Raises FenceHangs before anything is written, FenceRefused, NoAuthorizer, or a cluster's error. A fence that would keep out
    this user itself, who copies back with ``move.reverse``, is taken down again.
    """
    kind, flow = opened.flow.settings.move_fence, opened.flow
    if kind == "none":
        return []
    admin = connect(flow.source)
    ensure_internal_topics(flow)
    with session(opened) as mirror:
        there = {(each.topic, each.principal) for each in standing(mirror, move)}
        found = _of_topics(mirror, admin, move) if kind == "topic" else _of_principals(mirror, admin, move)
        now_ms = int(time.time() * 1000)
        new = [
            Fence(topic=topic, principal=who, move=move.name, before=before, time_ms=now_ms, by=order.by)
            for (topic, who), before in found.items()
            if (topic, who) not in there
        ]
        with unclaimed(mirror, order.window) as pen:
            pen.write([(each.encode_key(), each.encode_value()) for each in new])
        mirror.catch_up()
        fences = standing(mirror, move)
        _raise_refused(opened, _put(admin, fences))
        try:
            if kind == "topic":
                _check_transactions(mirror, move)  # one may have begun since
            elif flow.settings.move_reverse:
                _check_own_right(admin, flow.name, move)
        except (FenceHangs, FenceRefused):
            take_down(opened, move, order)
            raise
    return list(map(str_of, fences))


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
    if fence.principal:
        return f"{fence.topic}: {fence.principal} is denied WRITE"
    return f"{fence.topic}: {LARGEST} = {FENCE} ({fence.before or 'not set on the topic'} before)"


def down(flow: str, move: str) -> str:
    """The command that takes a fence down, and nothing else."""
    return command("migration", "undo", "--move", move, "--fence", "--reason", "…", "--yes", flow=flow)


def _of_topics(mirror: Mirror, admin: Admin, move: Move) -> dict[tuple[str, str], str]:
    """The topics' own values of what is to be changed; none of those that others have fenced. Raises FenceHangs."""
    _check_transactions(mirror, move)
    ours, found = {each.topic for each in standing(mirror, move)}, {}
    for topic, configs in topic_configs(admin, move.names).items():
        largest = configs[LARGEST]
        if topic in ours or largest.value != FENCE:
            found[topic, ""] = (largest.value or "") if largest.is_own else ""
    return found


def _of_principals(mirror: Mirror, admin: Admin, move: Move) -> dict[tuple[str, str], str]:
    """The principals that are to be denied; none of those that others have denied. Raises NoAuthorizer, FenceRefused."""
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
        raise FenceRefused(flow.name, flow.source.alias, tuple(wrong))
    wanted = [(topic, who) for topic in move.names for who in whom]
    return {each: "" for each in wanted if each in ours or _denial(*each) not in there}


def _put(admin: Admin, fences: Sequence[Fence]) -> list[str]:
    changes, denials = [], {_denial(each.topic, each.principal) for each in fences if each.principal}
    there = topic_configs(admin, {each.topic for each in fences if not each.principal})
    for topic, configs in there.items():
        if configs[LARGEST].value != FENCE:
            changes.append(ConfigChange(topic, LARGEST, configs[LARGEST].value, FENCE))
    _, refused = create_acls(admin, sorted(denials - topic_acls(admin))) if denials else ((), ())
    return _refused(alter_configs(admin, changes).refused, refused)


def _take(admin: Admin, fences: Sequence[Fence]) -> list[str]:
    changes, denials = [], [_denial(each.topic, each.principal) for each in fences if each.principal]
    before = {each.topic: each.before for each in fences if not each.principal}
    for topic, configs in topic_configs(admin, before).items():
        if configs[LARGEST].value == FENCE:  # else it is another's by now
            changes.append(ConfigChange(topic, LARGEST, FENCE, before[topic] or None))
    return _refused(alter_configs(admin, changes).refused, delete_acls(admin, denials) if denials else ())


def _denial(topic: str, principal: str) -> Acl:
    return Acl(topic, "LITERAL", principal, ANY_HOST, "WRITE", "DENY")


def _refused(*parts: Iterable[AirmirrorError]) -> list[str]:
    return [str(each) for part in parts for each in part]


def _raise_refused(opened: Opened, reasons: Sequence[str]) -> None:
    if reasons:
        raise FenceRefused(opened.flow.name, opened.flow.source.alias, tuple(reasons))


def _check_own_right(admin: Admin, flow: str, move: Move) -> None:
    """Raise FenceRefused where the fence keeps out Airmirror's own user, who is to copy back what is written on the target.

    No request says who this user is; what it may do is asked until every broker has had the time to know the new ACLs.
    """
    until = time.monotonic() + KNOWN_SECONDS
    while time.monotonic() < until:
        if denied := sorted(move.names.keys() - writable_topics(admin, tuple(move.names))):
            way_out = f"set {flow}.move.{move.name}.principals to those of its applications"
            reasons = [f"{topic}: this user, who copies back, is denied WRITE by it; {way_out}" for topic in denied]
            raise FenceRefused(flow, admin.cluster.alias, tuple(reasons))
        time.sleep(KNOWN_SECONDS / 10)  # nothing tells when a broker has heard of an ACL


def _check_transactions(mirror: Mirror, move: Move) -> None:
    """Raise FenceHangs where a transaction is open, or can begin: a producer with a transactional id was seen there."""
    source = mirror.source
    source.refresh(move.names)
    keys = [TopicPartition(topic, number) for topic in move.names for number in range(source.partitions(topic))]
    names = producers_by_id(known_transactions(source))
    found = {
        f"{each.partition}: {names.get(each.producer_id, f'producer {each.producer_id}')}"
        for each in active_producers(source, keys).found
        if each.open_from >= 0 or each.producer_id in names
    }
    if found:
        raise FenceHangs(mirror.flow.name, tuple(sorted(found)))

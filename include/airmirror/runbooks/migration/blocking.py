"""Block a move group's producers: ACLs on the source deny them WRITE, until they are deleted.

What was there before is written to the mapping topic first, so that whoever is killed and runs again deletes what was
created, and nothing else. Airmirror's own copies are not kept back: they are read.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from airmirror.clusters.admin.acls import Acl, AclRefused, create_acls, delete_acls, topic_acls, writable_topics
from airmirror.clusters.admin.client import Admin, connect
from airmirror.clusters.protocol.described import acl_bindings
from airmirror.config import Flow
from airmirror.errors import command
from airmirror.flows.prepare import Opened
from airmirror.runbooks.errors import RunbookError
from airmirror.runbooks.migration.chosen import Move, session
from airmirror.runbooks.migration.moving import WRITES, covers, principals_of
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.moving import unleased
from airmirror.topics.internal import ensure_internal_topics
from airmirror.windows.mirror import Mirror
from airmirror.wire.moves import ProducerBlock

ANY_HOST = "*"
KNOWN_SECONDS = 2.0  # for ACLs to be known to all brokers


class BlockRefused(RunbookError):
    """Producers that a cluster does not let this user block or unblock, or that would not be kept out."""

    cluster: str
    says = (
        "its producers on {0.cluster!r} could not be blocked or unblocked; to block none, as you stop every producer "
        "yourself, set move.block.producers = none: what is blocked already stays so"
    )


def block_producers(opened: Opened, move: Move, order: MoveOrder) -> list[str]:
    """Block producers as ``move.block.producers`` wants, as far as they are not blocked; the blocks, in words, one each.

    Raises BlockRefused, NoAuthorizer, or a cluster's error. A block that would keep out this user itself, who is to copy back,
    is lifted again.
    """
    flow = opened.flow
    if flow.settings.move_block_producers == "none":
        return []
    admin = connect(flow.source)
    ensure_internal_topics(flow)
    with session(opened) as mirror:
        there = {(each.topic, each.principal) for each in standing(mirror, move)}
        now_ms = int(time.time() * 1000)
        new = [
            ProducerBlock(topic=topic, principal=who, move=move.name, time_ms=now_ms, by=order.by)
            for topic, who in _wanted(mirror, admin, move)
            if (topic, who) not in there
        ]
        with unleased(mirror, order.window) as writer:
            writer.write([(each.encode_key(), each.encode_value()) for each in new])
        mirror.catch_up()
        blocks = standing(mirror, move)
        _raise_refused(flow, _put(admin, blocks))
        if order.goes_back(flow):
            try:
                way_out = f"set {flow.name}.move.{move.name}.principals to those of its applications"
                _check_own_right(admin, flow, move, way_out)
            except BlockRefused:
                unblock_producers(opened, move, order)
                raise
    return list(map(str_of, blocks))


def check_blocked(opened: Opened, move: Move) -> None:
    """Raise BlockRefused where a block keeps out this user, who is to copy back what is written on the target."""
    with session(opened) as mirror:
        stands = standing(mirror, move)
    if stands:
        way_out = f"when its producers are stopped, unblock them: {unblock_command(opened.flow.name, move.name)}"
        _check_own_right(connect(opened.flow.source), opened.flow, move, way_out)


def unblock_producers(opened: Opened, move: Move, order: MoveOrder) -> list[ProducerBlock]:
    """Unblock the producers of these topics: ACLs are as they were before. Raises BlockRefused, or a cluster's error."""
    with session(opened) as mirror:
        blocks = standing(mirror, move)
        if blocks:
            denials = [_denial(each.topic, each.principal) for each in blocks]
            _raise_refused(opened.flow, delete_acls(connect(opened.flow.source), denials))
            with unleased(mirror, order.window) as writer:
                writer.write([(each.encode_key(), None) for each in blocks])
            mirror.catch_up()
    return blocks


def standing(mirror: Mirror, move: Move) -> list[ProducerBlock]:
    """Return the blocks on the topics of a move group, by the ledger, which must have caught up."""
    return [each for each in mirror.index.of_kind(ProducerBlock) if each.topic in move.names]


def str_of(block: ProducerBlock) -> str:
    return f"{block.topic}: {block.principal} is denied WRITE"


def unblock_command(flow: str, move: str) -> str:
    return command("migration", "undo", "--move", move, "--unblock", "--reason", "…", "--yes", flow=flow)


def _wanted(mirror: Mirror, admin: Admin, move: Move) -> list[tuple[str, str]]:
    """The principals to be denied, by topic; none of those that others have denied. Raises NoAuthorizer, BlockRefused."""
    there, bindings, flow = topic_acls(admin), acl_bindings(mirror.source) or (), mirror.flow
    ours = {(each.topic, each.principal) for each in standing(mirror, move)}
    whom = principals_of(bindings, move.names, WRITES) if move.principals is None else move.principals
    wrong = [] if whom else [f"no ACL names who may write; set {flow.name}.move.{move.name}.principals"]
    # Where no ACL is found everybody may (allow.everyone.if.no.acl.found): with the first one nobody may even read.
    allowed = [each for each in bindings if each.resource == "TOPIC" and each.permission == "ALLOW"]
    bare = [topic for topic in move.names if not any(covers(each, topic) for each in allowed)]
    wrong += [
        f"{topic}: no ACL allows anything there; a first one, which denies, would shut out readers" for topic in bare
    ]
    _raise_refused(flow, wrong)
    wanted = [(topic, who) for topic in move.names for who in whom]
    return [each for each in wanted if each in ours or _denial(*each) not in there]


def _put(admin: Admin, blocks: Sequence[ProducerBlock]) -> Sequence[AclRefused]:
    denials = {_denial(each.topic, each.principal) for each in blocks}
    return create_acls(admin, sorted(denials - topic_acls(admin)))[1] if denials else ()


def _denial(topic: str, principal: str) -> Acl:
    return Acl(topic, "LITERAL", principal, ANY_HOST, "WRITE", "DENY")


def _raise_refused(flow: Flow, reasons: Sequence[object]) -> None:
    if reasons:
        raise BlockRefused(flow.name, tuple(map(str, reasons)), flow.source.alias)


def _check_own_right(admin: Admin, flow: Flow, move: Move, way_out: str) -> None:
    """Raise BlockRefused where the block keeps out Airmirror's own user, who is to copy back what is written on the target.

    No request says who this user is; what it may do is asked until every broker has had the time to know the new ACLs.
    """
    until = time.monotonic() + KNOWN_SECONDS
    while time.monotonic() < until:
        denied = sorted(move.names.keys() - writable_topics(admin, tuple(move.names)))
        said = f"this user, who copies back, is denied WRITE by it; {way_out}"
        _raise_refused(flow, [f"{topic}: {said}" for topic in denied])
        time.sleep(KNOWN_SECONDS / 10)  # nothing tells when a broker has heard of an ACL

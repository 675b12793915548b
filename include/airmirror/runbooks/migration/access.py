"""The rights and quotas of a move group's clients on the target: what lacks there, and copied with ``sync.topic.acls.mode``.

ACLs of its topics (WRITE and prefixed ones too, under the topics' names there), of its groups, of the transactional ids of those
who may write, and quotas of these users. None is deleted or changed. A block stays where it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from airmirror.clusters.protocol.connection import UnsupportedBroker
from airmirror.clusters.protocol.described import AclBinding, NotDescribed, Quota, acl_bindings, client_quotas
from airmirror.clusters.protocol.granted import create_acl_bindings, set_quotas
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import counted
from airmirror.flows.prepare import Opened
from airmirror.runbooks.migration.chosen import Move, session
from airmirror.runbooks.migration.moving import OWN_IDS, WRITES, covers, principals_of
from airmirror.windows.mirror import Mirror
from airmirror.wire.moves import ProducerBlock

MIGRATE = "migrate"
USER = "User:"


@dataclass(frozen=True)
class MissingRights:
    """ACLs and quotas that the target lacks, quotas that differ there, and why something is not known. ``left``: ACLs of ids of
    others too, or of operations of a newer Kafka, which are not copied."""

    acls: tuple[AclBinding, ...] = ()
    left: tuple[AclBinding, ...] = ()
    quotas: tuple[Quota, ...] = ()
    different: tuple[Quota, ...] = ()
    unknown: str = ""

    @property
    def lines(self) -> list[str]:
        return [
            *(f"lacks there: {each}" for each in (*self.acls, *self.quotas)),
            *(f"differs there, and stays: {each}" for each in self.different),
            *(f"is of others' ids too, or of a newer Kafka, so that you give it there: {each}" for each in self.left),
            *([f"not known: {self.unknown}"] if self.unknown else []),
        ]


def lacking(mirror: Mirror, move: Move) -> MissingRights:
    """Look at both clusters; the ledger must have caught up. Nothing is written."""
    try:
        here, there = acl_bindings(mirror.source) or [], acl_bindings(mirror.target)
        quotas, theirs = client_quotas(mirror.source), client_quotas(mirror.target)
    except (NotDescribed, UnsupportedBroker) as error:
        return MissingRights(unknown=str(error))
    who = set(principals_of(here, move.names)) | set(move.principals or ())
    blocks = {(each.topic, each.principal) for each in mirror.index.of_kind(ProducerBlock)}
    acls, left = meant(here, there, move, who, blocks) if there is not None else ([], [])
    set_there = {(each.entity, each.key): each.value for each in theirs}
    ours = [each for each in quotas if ("user", each.user) in each.entity and f"{USER}{each.user}" in who]
    return MissingRights(
        acls=tuple(acls),
        left=tuple(left),
        quotas=tuple(each for each in ours if (each.entity, each.key) not in set_there),
        different=tuple(each for each in ours if set_there.get((each.entity, each.key), each.value) != each.value),
    )


def copy_access(opened: Opened, move: Move) -> Iterator[str]:
    """Create what lacks where ``sync.topic.acls.mode = migrate`` says so; what was done, or would be, in words."""
    with session(opened) as mirror:
        found = lacking(mirror, move)
        if opened.flow.settings.sync_topic_acls_mode != MIGRATE:
            yield from found.lines
            if found.acls or found.quotas:
                yield f"not copied: {opened.flow.name}.sync.topic.acls.mode = {MIGRATE} is not set"
            return
        refused = _create(mirror.target, found.acls)
        of_quotas = set_quotas(mirror.target, found.quotas)
    for each in found.acls:
        yield f"refused: {each}: {refused[each]}" if each in refused else f"created: {each}"
    yield from (f"refused: quotas of {whom}: {reason}" for whom, reason in of_quotas.items())
    yield from (f"set: {each}" for each in found.quotas if each.whom not in of_quotas)
    yield from MissingRights(left=found.left, different=found.different, unknown=found.unknown).lines
    yield f"{counted(len(found.acls) - len(refused), 'ACL')} and {counted(len(found.quotas), 'quota')} copied"


def _create(target: Routes, acls: Collection[AclBinding]) -> dict[AclBinding, str]:
    """Create what denies, then what allows but for the names whose DENY was refused; what was refused, with the reason."""
    denies, allows = ([each for each in acls if each.permission == which] for which in ("DENY", "ALLOW"))
    refused = create_acl_bindings(target, denies) if denies else {}
    open_ = {(each.resource, each.name) for each in refused}
    safe = [each for each in allows if (each.resource, each.name) not in open_]
    refused |= dict.fromkeys((each for each in allows if each not in safe), "what denies there was refused")
    return refused | (create_acl_bindings(target, safe) if safe else {})


def meant(
    here: Sequence[AclBinding],
    there: Collection[AclBinding],
    move: Move,
    who: Collection[str],
    blocks: Collection[tuple[str, str]],
) -> tuple[list[AclBinding], list[AclBinding]]:
    """The ACLs of a move group that the target lacks, and those that are left, for they are of others' ids too, or of an
    operation that has only a number here. What is of a prefix, or of all, is of these topics and groups alone: on the target
    there are others. A block (topic and principal) stays. Ids are allowed to who may write these topics.
    """
    writers = {*principals_of(here, move.names, WRITES), *(move.principals or ())}
    writers = {*who} if f"{USER}*" in writers else writers
    its = [acl for each in here for acl in _narrowed(each, move, who if each.permission == "DENY" else writers)]
    its = [
        each
        for each in its
        if (each.permission, each.operation) != ("DENY", "WRITE") or (each.name, each.principal) not in blocks
    ]
    left = [each for each in its if each.operation.isdecimal() or _is_of_others(each)]
    return missing_bindings([each for each in its if each not in left], there, move.names), sorted(left)


def missing_bindings(
    source: Collection[AclBinding], target: Collection[AclBinding], names: Mapping[str, str]
) -> list[AclBinding]:
    """The ACLs that clients will need on the target and that it lacks: topics' under their ``names`` there, others as they are;
    what denies comes first. Those of topics that are not named are left out.
    """
    found = set()
    for acl in source:
        if acl.resource != "TOPIC" or acl.name == "*":
            found.add(acl)
        else:
            remote = {name for topic, name in names.items() if covers(acl, topic)}
            found |= {replace(acl, name=name, pattern="LITERAL") for name in remote}
    return sorted(found - set(target), key=lambda each: (each.permission != "DENY", each))


def _narrowed(acl: AclBinding, move: Move, who: Collection[str]) -> list[AclBinding]:
    """The ACL where it is about the move group: of these topics or groups alone, or of ids of ``who``, as they are: an
    application may choose new ones, as Kafka Streams does with an empty directory."""
    names = {"TOPIC": move.names, "GROUP": move.groups}.get(acl.resource)
    if names is None:
        return [acl] if acl.resource == "TRANSACTIONAL_ID" and acl.principal in who else []
    return [replace(acl, name=name, pattern="LITERAL") for name in names if covers(acl, name)]


def _is_of_others(acl: AclBinding) -> bool:
    """Return whether an ACL of transactional ids is of those of everybody there, Airmirror's own among them."""
    return acl.resource == "TRANSACTIONAL_ID" and (covers(acl, OWN_IDS) or acl.name.startswith(OWN_IDS))

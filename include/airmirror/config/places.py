"""The place of a key (top level, ``<cluster>.``, ``<source>-><target>.``), and the readers it has there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from airmirror.config.keys import COMPARE_KEYS, FAMILIES, KEYS, MOVE_KEYS, OWN, KeyScope, Use
from airmirror.config.keys.clients import CLIENT, CONNECTION, NOT_OF_RECORDS, READ, ROLES, SECURITY, SET_HERE


class Level(IntEnum):
    """The levels of a file, in the order of their precedence."""

    TOP = 0
    CLUSTER = 1
    FLOW = 2
    COMPARE = 3  # of a comparison, which is no flow
    MOVE = 4  # of a move group, which is a flow's


@dataclass(frozen=True)
class Place:
    """A key taken apart: its level, the alias or ``source->target`` before it (else ""), and its name without that."""

    level: Level
    owner: str
    name: str


@dataclass(frozen=True)
class ClientSetting:
    """A client setting that is read: on which sides of a flow, and its name in Cluster.properties."""

    sides: tuple[str, ...]
    property: str


@dataclass(frozen=True)
class Unread:
    """The reason why nothing reads a key: an error, or only a note if MirrorMaker 2 accepts it too."""

    message: str
    error: bool
    closest: str | None = None


READ_AT = {
    KeyScope.DEPLOYMENT: (Level.TOP,),
    KeyScope.CLUSTER: (Level.CLUSTER,),
    KeyScope.FLOW: (Level.TOP, Level.FLOW),
    KeyScope.FLOW_ONLY: (Level.FLOW,),
    KeyScope.COMPARE: (Level.COMPARE,),
    KeyScope.MOVE: (Level.MOVE,),
    KeyScope.WORKER: (Level.TOP, Level.CLUSTER, Level.FLOW),
}

NO_CLIENTS = Unread("has no effect: Airmirror's clients do not have it", error=False)

OWN_KEYS = {Level.COMPARE: COMPARE_KEYS, Level.MOVE: MOVE_KEYS}
"""The keys of the levels that share none with the others."""

_BOTH = ("source", "target")
_ROLE = re.compile(r"(?:(source|target)\.)?(consumer|producer|admin)\.(override\.)?(.+)")
_COMPARE = re.compile(r"compare\.([A-Za-z0-9_-]{1,100})\.(.+)")
_MOVE = re.compile(r"move\.([A-Za-z0-9_-]{1,100})\.(.+)")
_SIDE = re.compile(r"(source|target)\.cluster\.(.+)")


def place(key: str, aliases: Sequence[str]) -> Place:
    """Take a key apart at the longest alias, or pair of aliases, that it begins with (aliases may contain dots)."""
    if key not in KEYS:
        flows = [f"{source}->{target}" for source in aliases for target in aliases if f"{source}->{target}." in key]
        for level, owners in ((Level.FLOW, flows), (Level.CLUSTER, aliases)):
            for owner in sorted(owners, key=len, reverse=True):
                if key.startswith(f"{owner}."):
                    name = key[len(owner) + 1 :]
                    move = _MOVE.fullmatch(name) if level is Level.FLOW and name not in KEYS else None
                    return Place(Level.MOVE, f"{owner}.move.{move[1]}", move[2]) if move else Place(level, owner, name)
        if found := _COMPARE.fullmatch(key):
            return Place(Level.COMPARE, found[1], found[2])
    return Place(Level.TOP, "", key)


def client_setting(at: Place) -> ClientSetting | None:
    """Return the meaning of a client setting at its place; None if no client reads it there (M/MirrorConnectorConfig.java)."""
    if at.level in OWN_KEYS:
        return None
    if at.level is Level.TOP:
        return ClientSetting(_BOTH, at.name) if at.name in SECURITY else None
    if role := _ROLE.fullmatch(at.name):
        side, kind, override, name = role.groups()
        if name not in ROLES[kind] or (at.level is Level.CLUSTER and (side or override)):
            return None
        # Connect's `producer.override.` is for the producer that writes the records, which is the target's.
        sides = (side,) if side else ("target",) if override else _BOTH
        return ClientSetting(sides, f"{kind}.{name}")
    if at.level is Level.CLUSTER:
        return ClientSetting(_BOTH, at.name) if at.name in CONNECTION else None
    side_only = _SIDE.fullmatch(at.name)
    return ClientSetting((side_only[1],), side_only[2]) if side_only and side_only[2] in CONNECTION else None


def unread(at: Place, aliases: Sequence[str]) -> Unread | None:
    """Return the reason why nothing reads a key at its place; None if something does."""
    if at.level in OWN_KEYS:
        keys, owner = OWN_KEYS[at.level], at.owner if at.level is Level.MOVE else f"compare.{at.owner}"
        closest = next(iter(difflib.get_close_matches(at.name, sorted(keys), n=1, cutoff=0.4)), None)
        unknown = Unread("unknown key", error=True, closest=closest and f"{owner}.{closest}")
        return None if at.name in keys else unknown
    if key := KEYS.get(at.name):
        if at.level not in READ_AT[key.scope]:
            known_to_mm2 = at.name not in OWN and key.scope is not KeyScope.FLOW_ONLY
            return Unread(f"has no effect here: it is read {key.scope}", error=not known_to_mm2)
        return Unread(key.here, error=False) if key.use is Use.WITHOUT_EFFECT else None
    if setting := client_setting(at):
        return of_client(setting.property)
    for prefix, (_, reason) in FAMILIES.items():
        if at.name.startswith(prefix):
            reason = reason or ("" if at.level is Level.TOP else f"it is read {KeyScope.DEPLOYMENT}")
            return Unread(f"{Use.WITHOUT_EFFECT}: {reason}", error=False) if reason else None
    role = _ROLE.fullmatch(at.name)
    name = role[4] if role else at.name
    if name in CLIENT - READ:
        return NO_CLIENTS
    if name in READ:
        return Unread(f"has no effect here, as in MirrorMaker 2: write {_where_read(at, name)}", error=False)
    return Unread("unknown key", error=True, closest=_closest(at, aliases))


def of_client(property_: str) -> Unread | None:
    """Return a note on a client setting that has no effect here, or not on the records."""
    first, _, rest = property_.partition(".")
    role, name = (first, rest) if first in ROLES else ("", property_)
    if role == "producer" and name in SET_HERE:
        return Unread("has no effect: everything is written with acks=all, records in transactions", error=False)
    if role == "producer" and name in NOT_OF_RECORDS:
        what = "counts for offset syncs, checkpoints and heartbeats only: records are copied in the batches that they are in"
        return Unread(f"{what}, compressed as they are", error=False)
    is_class = name in SECURITY and name.endswith(".class")  # others than Kafka's are refused where a client is made
    return None if name in READ or is_class else NO_CLIENTS


def _where_read(at: Place, name: str) -> str:
    owner = at.owner or "<cluster>"
    if name in CONNECTION:
        return f"{owner}.source.cluster.{name}" if at.level is Level.FLOW else f"{owner}.{name}"
    return f"{owner}.{next(role for role in ROLES if name in ROLES[role])}.{name}"


def _closest(at: Place, aliases: Sequence[str]) -> str | None:
    """The known key that looks most like an unknown one; the alias before it may be misspelt too."""
    flows = [f"{source}->{target}" for source in aliases for target in aliases if source != target]
    owners = {Level.CLUSTER: [at.owner], Level.FLOW: [at.owner]}.get(at.level, [*aliases, *flows])
    known = {f"{owner}.{name}" for owner in owners for name in _known(Level.FLOW if "->" in owner else Level.CLUSTER)}
    if at.level is Level.TOP:
        known |= _known(Level.TOP)
    key = f"{at.owner}.{at.name}" if at.owner else at.name
    return next(iter(difflib.get_close_matches(key, sorted(known), n=1, cutoff=0.4)), None)


def _known(level: Level) -> set[str]:
    names = {key.name for key in KEYS.values() if level in READ_AT[key.scope]}
    roles = {f"{role}.{name}" for role, settings in ROLES.items() for name in settings}
    sides = {f"{side}.cluster.{name}" for side in _BOTH for name in CONNECTION}
    sided_roles = {f"{side}.{name}" for side in _BOTH for name in roles}
    more = {Level.TOP: SECURITY, Level.CLUSTER: CONNECTION | roles, Level.FLOW: roles | sides | sided_roles}
    return names | more[level]

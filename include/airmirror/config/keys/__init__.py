"""The one table of all keys: MirrorMaker 2's, Kafka Connect's, Airmirror's own, and the names of client settings."""

from __future__ import annotations

from airmirror.config.keys import airmirror, clients, connect, mirrormaker, named
from airmirror.config.keys.clients import (
    COPIES,
    LIBRDKAFKA,
    LOG_IN,
    NOT_OF_RECORDS,
    PREFIXES,
    ROLES,
    SECURITY,
    SET_HERE,
)
from airmirror.config.keys.connect import FAMILIES
from airmirror.config.keys.key import Key, KeyScope, KeyType, Use

KEYS: dict[str, Key] = {key.name: key for key in (*mirrormaker.KEYS, *connect.KEYS, *airmirror.KEYS)}
"""Every key by name; client settings are not among them, see ROLES."""

COMPARE_KEYS: dict[str, Key] = {key.name: key for key in named.COMPARE}
"""The keys at ``compare.<name>.``, whose names mean something else at other places."""

MOVE_KEYS: dict[str, Key] = {key.name: key for key in named.MOVE}
"""The keys at ``<source>-><target>.move.<name>.``."""

OWN = frozenset(key.name for key in airmirror.KEYS)
"""The keys that no MirrorMaker 2 file has."""

CONNECTION = clients.SECURITY | clients.COMMON
"""The settings that every kind of client knows."""

CLIENT = frozenset().union(*ROLES.values())
"""The settings that any kind of client knows."""

__all__ = [
    "CLIENT",
    "COMPARE_KEYS",
    "CONNECTION",
    "COPIES",
    "FAMILIES",
    "KEYS",
    "LIBRDKAFKA",
    "LOG_IN",
    "MOVE_KEYS",
    "NOT_OF_RECORDS",
    "OWN",
    "PREFIXES",
    "ROLES",
    "SECURITY",
    "SET_HERE",
    "Key",
    "KeyScope",
    "KeyType",
    "Use",
]

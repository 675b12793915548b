"""The one table of all keys: MirrorMaker 2's, Kafka Connect's, and Airmirror's own."""

from __future__ import annotations

from airmirror.config.keys import airmirror, connect, mirrormaker, named
from airmirror.config.keys.connect import FAMILIES
from airmirror.config.keys.key import Key, KeyScope, KeyType, Use

KEYS: dict[str, Key] = {key.name: key for key in (*mirrormaker.KEYS, *connect.KEYS, *airmirror.KEYS)}
"""Every key by name; client settings are not among them, see ``clients``."""

COMPARE_KEYS: dict[str, Key] = {key.name: key for key in named.COMPARE}
"""The keys at ``compare.<name>.``, whose names mean something else at other places."""

MOVE_KEYS: dict[str, Key] = {key.name: key for key in named.MOVE}
"""The keys at ``<source>-><target>.move.<name>.``."""

OWN = frozenset(key.name for key in airmirror.KEYS)
"""The keys that no MirrorMaker 2 file has."""

__all__ = ["COMPARE_KEYS", "FAMILIES", "KEYS", "MOVE_KEYS", "OWN", "Key", "KeyScope", "KeyType", "Use"]

"""The keys ``<source>-><target>.move.<name>.…``: each name is a move group, what a migration moves together."""

from __future__ import annotations

from airmirror.config.keys.key import Key, Scope, Type

KEYS = (
    Key(
        "topics",
        Type.LIST,
        None,
        "The source's topics that move together: names and regular expressions; needed.",
        Scope.MOVE,
    ),
    Key(
        "groups",
        Type.LIST,
        None,
        "The consumer groups that move with them: names and regular expressions; not set: those that read the topics.",
        Scope.MOVE,
    ),
    Key(
        "transactional.ids",
        Type.LIST,
        None,
        "The transactional ids that write them: names and regular expressions; not set: those that are found.",
        Scope.MOVE,
    ),
    Key(
        "principals",
        Type.STRING,
        None,
        "The principals that may, separated by semicolons as in super.users (`User:ann;User:CN=app,O=shop`); not set: those "
        "that ACLs name.",
        Scope.MOVE,
    ),
)

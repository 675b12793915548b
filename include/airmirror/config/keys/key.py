"""A configuration key: its name, type, default, the places where it may stand, and its effect here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class KeyType(StrEnum):
    """The types of Kafka's ConfigDef; lists are split on commas with the whitespace around them."""

    BOOLEAN = "boolean"
    SHORT = "short"
    INT = "int"
    LONG = "long"
    STRING = "string"
    LIST = "list"
    CLASS = "class"
    SCHEDULE = "schedule"  # ours: an interval or a cron line
    SECONDS = "seconds"  # ours: where MirrorMaker 2 has a long; fractions too
    SAMPLE = "sample"  # ours: a share or a number of ranges


class KeyScope(StrEnum):
    """The places where a key is read. The later level wins: top level, then ``<cluster>.``, then ``<source>-><target>.``"""

    DEPLOYMENT = "at the top level"
    CLUSTER = "at <cluster>."
    FLOW = "at the top level and at <source>-><target>."
    FLOW_ONLY = "at <source>-><target>."
    COMPARE = "at compare.<name>."
    MOVE = "at <source>-><target>.move.<name>."
    WORKER = "at the top level, at <target>. and at <source>-><target>."


class Use(StrEnum):
    """The kinds of effect that a key has here."""

    USED = "used"
    WITHOUT_EFFECT = "accepted, without effect"
    DEFAULT_ONLY = "refused unless it is the default"


@dataclass(frozen=True)
class Key:
    """One row of the table of keys. ``default`` is as it would be written in the file; None where there is none.

    ``values``: the only ones that it takes; those of a number it takes besides.
    """

    name: str
    type: KeyType
    default: str | None
    doc: str
    scope: KeyScope = KeyScope.FLOW
    use: Use = Use.USED
    reason: str = ""
    values: tuple[str, ...] = ()
    minimum: float | None = None

    @property
    def here(self) -> str:
        """The key's effect here, with the reason: "used", "accepted, without effect: …", …"""
        return f"{self.use}: {self.reason}" if self.reason else str(self.use)


@dataclass(frozen=True)
class KeyMaker:
    """Makes keys of a type. ``line``: the key with its default, as a file would have them; without "=" it has none."""

    type: KeyType
    minimum: float | None = None  # where a key has none of its own

    def __call__(
        self,
        line: str,
        doc: str,
        scope: KeyScope = KeyScope.FLOW,
        *,
        use: Use = Use.USED,
        reason: str = "",
        values: tuple[str, ...] = (),
        minimum: float | None = None,
    ) -> Key:
        name, is_set, default = line.partition("=")
        given = default.strip() if is_set else None
        minimum = self.minimum if minimum is None else minimum
        return Key(name.strip(), self.type, given, doc, scope, use=use, reason=reason, values=values, minimum=minimum)

    def without_effect(self, line: str, doc: str, reason: str, scope: KeyScope = KeyScope.FLOW) -> Key:
        return self(line, doc, scope, use=Use.WITHOUT_EFFECT, reason=reason)

    def default_only(self, line: str, doc: str, reason: str, scope: KeyScope = KeyScope.FLOW) -> Key:
        return self(line, doc, scope, use=Use.DEFAULT_ONLY, reason=reason)


BOOLEAN, SHORT, INT, LONG, STRING, LIST, CLASS, SCHEDULE, SECONDS, SAMPLE = map(KeyMaker, KeyType)
POSITIVE, NATURAL = KeyMaker(KeyType.LONG, 1), KeyMaker(KeyType.LONG, 0)

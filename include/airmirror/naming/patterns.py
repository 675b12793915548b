"""Java's regular expressions (java.util.regex.Pattern) translated to Python's, or refused with pattern and position.

What means the same in both is copied; what Java spells differently is respelt (``\\Q…\\E``, ``\\p{Alpha}``, ``\\z``,
``(?<name>…)``, flags in the middle); what Python lacks is refused: ``[a-z&&[^b]]``, ``\\G``, ``\\R``, ``\\X``, flags
other than i, m and s, scripts and blocks. ASCII rules hold for ``\\w``, ``\\d``, ``\\s``, ``\\b`` and case, as in Java.
Filters of such patterns are those of MirrorMaker 2: DefaultTopicFilter, DefaultGroupFilter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from airmirror.errors import AirmirrorError
from airmirror.naming.characters import UnknownProperty, characters


class InvalidPattern(AirmirrorError, bad_input=True):
    """A regular expression that is wrong, or that Python can't match as Java does. ``position`` counts from 0."""

    says = "regular expression {0.pattern!r}: {0.reason}, at position {0.position}"
    pattern: str
    position: int
    reason: str


@lru_cache(maxsize=256)
def compile_list(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern that fullmatch()es what any of the patterns matches; nothing where there are none.

    The list is joined before it is read, as MirrorMaker 2 does, so a flag or a group number holds for what follows too.
    """
    if not patterns:
        return re.compile(r"(?!)")
    joined = "|".join(patterns)
    pieces: list[tuple[int, str]] = []
    try:
        _translate(joined, pieces)
        return re.compile("".join(text for _, text in pieces), re.ASCII)
    except _Refused as refused:
        position, reason = refused.args
    except re.error as error:
        position, reason = _original(pieces, error.pos or 0), error.msg
    start = 0
    for pattern in patterns:
        if position <= start + len(pattern):
            raise InvalidPattern(pattern, position - start, reason)
        start += len(pattern) + 1
    raise InvalidPattern(joined, position, reason)


class _Refused(Exception):
    """Position and reason."""


_GROUP = re.compile(
    r"\((?:\?(?:<(?P<name>[A-Za-z][A-Za-z0-9]*)>|(?P<kind>[:=!>]|<[=!])|(?P<flags>[a-zA-Z-]*)(?P<end>[:)])))?"
)
_REPEAT = re.compile(r"\{\d+(,\d*)?\}|[*+?]")
_FLAGS = re.compile(r"[ims]*(-[ims]*)?")


def _translate(pattern: str, pieces: list[tuple[int, str]]) -> None:
    """Append the translated pieces, each with the position it comes from. Raises _Refused."""
    # For each open group: where it opened and the flags set inside it, which hold to its end, over every "|".
    groups: list[tuple[int, list[str]]] = [(-1, [])]
    position = 0
    while position < len(pattern):
        char, start = pattern[position], position
        if char == "\\":
            text, position = _escape(pattern, position, inside=False)
        elif char == "[":
            text, position = _class(pattern, position)
        elif char == "(":
            text, position = _open(pattern, position, groups)
        elif char == ")":
            if len(groups) == 1:
                raise _Refused(position, "unmatched closing ')'")
            text, position = ")" * len(groups.pop()[1]) + ")", position + 1
        elif char == "|":
            flags = groups[-1][1]
            text, position = ")" * len(flags) + "|" + "".join(flags), position + 1
        elif char in "{*+?":
            repeat = _REPEAT.match(pattern, position)
            if not repeat:
                raise _Refused(position, "illegal repetition (a comma ends a pattern in a list)")
            text, position = repeat[0], repeat.end()
        else:
            text, position = char, position + 1
        pieces.append((start, text))
    if len(groups) > 1:
        raise _Refused(groups[-1][0], "unclosed group")
    pieces.append((len(pattern), ")" * len(groups[0][1])))


def _open(pattern: str, position: int, groups: list[tuple[int, list[str]]]) -> tuple[str, int]:
    """Translate the opening of a group, or the flags for the rest of the open one."""
    found = _GROUP.match(pattern, position)
    if not found or (found.end() == position + 1 and pattern.startswith("(?", position)):
        raise _Refused(position, "unknown group construct")
    flags = found["flags"]
    if flags is not None and not _FLAGS.fullmatch(flags):
        raise _Refused(position, f"flags other than i, m and s can't be translated: {flags}")
    if found["end"] == ")":
        scope = f"(?{flags.removesuffix('-')}:"
        groups[-1][1].append(scope)
        return scope, found.end()
    groups.append((position, []))
    return (f"(?P<{found['name']}>" if found["name"] else found[0].replace("-:", ":")), found.end()


_COPIED = frozenset("dDwWsStnrfa")
_OUTSIDE = {"b": r"\b", "B": r"\B", "A": r"\A", "z": r"\Z", "Z": r"(?=\n?\Z)"}
_HEX = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})|u([0-9A-Fa-f]{4})|0([0-3][0-7]{2}|[0-7]{1,2})")
_PROPERTY = re.compile(r"([pP])(?:\{([^}]*)\}|([A-Za-z]))")
_BACK_REFERENCE = re.compile(r"k<([A-Za-z][A-Za-z0-9]*)>|([1-9])(?![0-9])")


def _escape(pattern: str, position: int, inside: bool) -> tuple[str, int]:
    """A backslash and what follows, outside or inside a character class."""
    after = position + 1
    char = pattern[after : after + 1]
    if char == "Q":
        end = pattern.find(r"\E", after)
        quoted = pattern[after + 1 : end if end >= 0 else None]
        return re.escape(quoted), end + 2 if end >= 0 else len(pattern)
    if char in _COPIED and char:
        return f"\\{char}", after + 1
    if char == "e":
        return r"\x1b", after + 1
    if char in ("h", "H", "v", "V") or char in ("p", "P"):
        return _property(pattern, position, inside)
    if found := _HEX.match(pattern, after):
        digits = found[1] or found[2] or found[3]
        code = int(digits, 16) if digits else int(found[4], 8)
        if code > 0x10FFFF:
            raise _Refused(position, "no such character")
        return re.escape(chr(code)), found.end()
    if not inside:
        if char in _OUTSIDE and not pattern.startswith("b{", after):
            return _OUTSIDE[char], after + 1
        if found := _BACK_REFERENCE.match(pattern, after):
            return (f"(?P={found[1]})" if found[1] else f"\\{found[2]}"), found.end()
    if not char or (char.isascii() and char.isalnum()):
        raise _Refused(position, f"the escape \\{char} can't be translated")
    return re.escape(char), after + 1


def _property(pattern: str, position: int, inside: bool) -> tuple[str, int]:
    """``\\p{…}``, ``\\h`` or ``\\v`` or one of their opposites, as a set of characters."""
    char = pattern[position + 1]
    name, end, opposite = char.lower(), position + 2, char.isupper()
    if name == "p":
        found = _PROPERTY.match(pattern, position + 1)
        if not found:
            raise _Refused(position, "unknown character property")
        name, end = found[2] or found[3], found.end()
    try:
        content = characters(name, opposite)
    except UnknownProperty as error:
        raise _Refused(position, f"the character property {name} can't be translated") from error
    return content if inside else f"[{content}]", end


def _class(pattern: str, position: int) -> tuple[str, int]:
    """A character class. In both languages a "]" that comes first is itself."""
    start = position
    text = "[^" if pattern.startswith("[^", position) else "["
    first = position = position + len(text)
    while position < len(pattern):
        char = pattern[position]
        if char == "]" and position > first:
            return text + "]", position + 1
        if char == "[":
            raise _Refused(position, "a class within a class can't be translated")
        if pattern.startswith("&&", position):
            raise _Refused(position, "an intersection of classes (&&) can't be translated")
        if char == "\\":
            escaped, position = _escape(pattern, position, inside=True)
            text += escaped
        else:
            text += char if char in "-^" else re.escape(char)
            position += 1
    raise _Refused(start, "unclosed character class")


def _original(pieces: list[tuple[int, str]], position: int) -> int:
    """The position in the pattern of a position in its translation."""
    length = 0
    for start, text in pieces:
        length += len(text)
        if position < length:
            return start
    return pieces[-1][0]


@dataclass(frozen=True)
class TopicFilter:
    """Selects names that one of ``include`` matches as a whole and none of ``exclude``; an empty list matches nothing.

    Groups and topic configs are selected by the same rule.
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...]

    def matches(self, topic: str) -> bool:
        """Return whether the filter selects this name. Raises InvalidPattern for a pattern that Python can't match as Java."""
        return compile_list(self.include).fullmatch(topic) is not None and not compile_list(self.exclude).fullmatch(
            topic
        )


# A character, one of a class, or any; at most one of them repeated: nothing to try again and again.
_ONE = r"(?:[\w-]|\\[.\-_]|\.|\[\^?(?:[\w.-]|\\[.\-_])+\])"
_QUICK = re.compile(rf"{_ONE}*(?:{_ONE}[*+?]{_ONE}*)?", re.ASCII)


def is_quick(pattern: str) -> bool:
    """Return whether the time to match a pattern is bounded by its length and the name's, whoever wrote it."""
    return _QUICK.fullmatch(pattern) is not None

"""Filters as MirrorMaker 2's DefaultTopicFilter and DefaultGroupFilter: lists of names and Java regular expressions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from airmirror.naming.patterns import compile_list


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

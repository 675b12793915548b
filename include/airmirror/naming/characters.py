"""Java's character properties (``\\p{…}``, ``\\h``, ``\\v``) as the content of a Python character class."""

from __future__ import annotations

import re
import string
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise

LAST = sys.maxunicode
Run = tuple[int, int]  # first and last code point
_ALNUM = string.ascii_letters + string.digits
_NAMED = {
    "Lower": string.ascii_lowercase,
    "Upper": string.ascii_uppercase,
    "ASCII": "".join(map(chr, range(128))),
    "Alpha": string.ascii_letters,
    "Digit": string.digits,
    "Alnum": _ALNUM,
    "Punct": string.punctuation,
    "Graph": _ALNUM + string.punctuation,
    "Print": _ALNUM + string.punctuation + " ",
    "Blank": " \t",
    "Cntrl": "".join(map(chr, [*range(32), 127])),
    "XDigit": string.hexdigits,
    "Space": string.whitespace,
    "h": " \t\xa0\u1680\u180e\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))),
    "v": "\n\x0b\f\r\x85\u2028\u2029",
}
_CATEGORY = re.compile(
    r"(?:Is|gc=|general_category=)?(L[ultmo]?|M[nce]?|N[dlo]?|Z[slp]?|C[cfson]?|P[dsecifo]?|S[mcko]?)"
)


class UnknownProperty(LookupError):
    """A property whose characters are not known here: a script, a block, one of Java's own."""


@lru_cache(maxsize=64)
def characters(name: str, opposite: bool = False) -> str:
    """The characters that have a property, or all that lack it, as ranges for a class. Raises UnknownProperty."""
    if name in _NAMED:
        runs = [(ord(character), ord(character)) for character in sorted(_NAMED[name])]
    elif found := _CATEGORY.fullmatch(name):
        runs = [(first, last) for category, first, last in _categories() if category.startswith(found[1])]
    else:
        raise UnknownProperty(name)
    joined = _joined(runs)
    return _ranges(_between(joined) if opposite else joined)


@lru_cache(maxsize=1)
def _categories() -> tuple[tuple[str, int, int], ...]:
    """Runs of code points of one category, in order: category, first and last. (There are some three thousand.)"""
    found, first = [], 0
    for category, run in groupby(map(unicodedata.category, map(chr, range(LAST + 1)))):
        length = sum(1 for _ in run)
        found.append((category, first, first + length - 1))
        first += length
    return tuple(found)


def _joined(runs: Iterable[Run]) -> list[Run]:
    """Runs in order, those that touch as one."""
    found: list[Run] = []
    for first, last in runs:
        if found and found[-1][1] + 1 >= first:
            first, last = found.pop()[0], last
        found.append((first, last))
    return found


def _between(runs: Sequence[Run]) -> Iterator[Run]:
    """Yield the code points that are in none of them."""
    for (_, before), (after, _) in pairwise([(-1, -1), *runs, (LAST + 1, LAST + 1)]):
        if before + 1 < after:
            yield before + 1, after - 1


def _ranges(runs: Iterable[Run]) -> str:
    """The content of a class: ``\\x61-\\x7a``."""
    return "".join(re.escape(chr(first)) + (f"-{re.escape(chr(last))}" if last > first else "") for first, last in runs)

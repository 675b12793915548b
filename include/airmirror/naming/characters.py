"""Java's character properties (``\\p{…}``, ``\\h``, ``\\v``) as the content of a Python character class."""

from __future__ import annotations

import re
import string
import sys
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import count, groupby

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
        members = set(map(ord, _NAMED[name]))
    elif found := _CATEGORY.fullmatch(name):
        category = found[1]
        members = {code for code in _every_code() if unicodedata.category(chr(code)).startswith(category)}
    else:
        raise UnknownProperty(name)
    return _ranges(code for code in _every_code() if code not in members) if opposite else _ranges(sorted(members))


def _every_code() -> range:
    return range(sys.maxunicode + 1)


def _ranges(codes: Iterable[int]) -> str:
    """Ascending code points as ranges: ``\\x61-\\x7a``."""
    counter = count()
    runs = [list(run) for _, run in groupby(codes, key=lambda code: code - next(counter))]
    return "".join(re.escape(chr(run[0])) + (f"-{re.escape(chr(run[-1]))}" if len(run) > 1 else "") for run in runs)

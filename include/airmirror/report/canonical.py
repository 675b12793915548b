"""Canonical JSON: one sequence of bytes for one content, so that it can be signed and compared (docs/evidence.md).

As RFC 8785 has it: keys sorted, no blanks, UTF-8, shortest escapes. Unlike it, integers are exact beyond 2⁵³, because offsets
are; there are no other numbers, so that none has two forms.
"""

from __future__ import annotations

import json
from typing import Any


def canonical(value: object) -> bytes:
    """The bytes of a value of dicts, lists, texts, integers, booleans and None. Raises TypeError for anything else."""
    _check(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def parsed(data: bytes) -> Any:
    """The value of canonical bytes. Raises ValueError where they are no JSON, or not its canonical form."""
    try:
        value = json.loads(data)
        same = canonical(value) == data
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if not same:
        raise ValueError("it is not in canonical form: keys sorted, no blanks, UTF-8, integers only")
    return value


def _check(value: object) -> None:
    if isinstance(value, dict):
        for key, each in value.items():
            if not (isinstance(key, str) and key.isascii()):  # their order in UTF-8 and in UTF-16 would differ
                raise TypeError(f"a key {key!r}")
            _check(each)
    elif isinstance(value, list | tuple):
        for each in value:
            _check(each)
    elif not (value is None or isinstance(value, str | int)):
        raise TypeError(f"a value {value!r}")

"""JSON from a file that others wrote: no key twice, no numbers that are none, no depth without end."""

from __future__ import annotations

import json
from typing import Any

from airmirror.offsets.files.model import BadPositions


def parsed(path: str, text: str) -> Any:
    """The value of a JSON text. Raises BadPositions."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise BadPositions(path, f"the key {twice!r:.100} is twice in one object")
        return found

    def refused(constant: str) -> Any:
        raise BadPositions(path, f"{constant} is no JSON")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refused)
    except ValueError as error:
        raise BadPositions(path, f"it is no JSON: {error}") from error
    except RecursionError as error:
        raise BadPositions(path, "its JSON is nested too deep") from error


def compact(value: Any) -> str:
    """JSON on one line."""
    return json.dumps(value, separators=(",", ":"))


def indented(value: Any) -> str:
    """JSON for people too."""
    return json.dumps(value, indent=2) + "\n"

"""Times as a person types them."""

from __future__ import annotations

from datetime import UTC, datetime

from airmirror.config.errors import ConfigurationError, Problem


def time_of(option: str, text: str) -> int | None:
    """Epoch milliseconds of an ISO 8601 time, UTC by default; None of an empty text. Raises ConfigurationError."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        wrong = f"{option} {text!r} is no time of ISO 8601, for example 2026-11-21T06:00:00Z"
        raise ConfigurationError("airmirror", (Problem(None, "", wrong),)) from error
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)

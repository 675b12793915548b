"""Times for people. A record's time is its producer's, who may have written any number of 64 bits."""

from __future__ import annotations

from datetime import UTC, datetime

SECONDS = "%Y-%m-%d %H:%M:%S UTC"


def utc(milliseconds: int, pattern: str = SECONDS) -> str:
    """Epoch milliseconds as a date; as the number where no calendar has it."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime(pattern)
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"

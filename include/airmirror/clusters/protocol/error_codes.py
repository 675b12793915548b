"""Kafka's error codes as people read them."""

from __future__ import annotations

from kafka.errors import for_code


def error_name(code: int) -> str:
    """Kafka's name and number of an error code, as in "REQUEST_TIMED_OUT (7)"."""
    return f"{for_code(code).message} ({code})"

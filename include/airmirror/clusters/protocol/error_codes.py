"""Kafka's error codes as people read them."""

from __future__ import annotations

from kafka.errors import for_code


def error_name(code: int) -> str:
    """Kafka's name and number of an error code."""
    return f"{for_code(code).__name__} ({code})"

"""The number of examples that hypothesis makes up for a test, which `make test` reduces, and `make test QUICK=yes` more."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

FEWEST = 3


def share(count: int) -> int:
    """So much of ``count`` as the profile that is loaded has of hypothesis' 100 examples."""
    return max(min(count, FEWEST), count * settings().max_examples // 100)


def examples(count: int, **others: Any) -> settings:
    """Decorate a test of ``count`` examples, or of the profile's part of them; ``others``: as of ``settings``."""
    return settings(max_examples=share(count), **others)

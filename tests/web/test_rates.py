"""The rate limit of callers."""

from __future__ import annotations

import pytest

from airmirror.web.tokens import RateLimit


def test_a_caller_that_calls_too_often_is_told_when_to_come_again() -> None:
    now = 100.0
    limit = RateLimit(calls=2, clock=lambda: now)
    assert limit.take("a") == 0
    now = 110.0
    assert limit.take("a") == 0
    now = 120.0
    assert limit.take("a") == pytest.approx(40)
    assert limit.take("b") == 0  # each has its own
    now = 160.1
    assert limit.take("a") == 0
    assert limit.take("a") == pytest.approx(9.9)

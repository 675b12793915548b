"""Looking again until there is nothing left to wait for: at what no event tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_exponential, wait_random

Found = TypeVar("Found")


def look_again(look: Callable[[], Found], seconds: float) -> Found:
    """The last that ``look`` finds: nothing, or what is left after ``seconds``."""
    looking = Retrying(
        retry=retry_if_result(bool),
        wait=wait_exponential(multiplier=0.02, max=1.0) + wait_random(0, 0.02),
        stop=stop_after_delay(seconds),
        retry_error_callback=lambda state: state.outcome and state.outcome.result(),
    )
    return looking(look)

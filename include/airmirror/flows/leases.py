"""Waiting for a flow's lease while another window has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from airmirror.config import Flow
from airmirror.windows.errors import FlowBusy

LEAST_SECONDS, MARGIN_SECONDS = 180.0, 60.0
FIRST_SECONDS, MOST_SECONDS = 0.5, 5.0  # between two looks

Done = TypeVar("Done")


def when_free(
    flow: Flow, work: Callable[[], Done], tell: Callable[[str], None] = lambda phase: None, seconds: float | None = None
) -> Done:
    """Do what needs the flow's lease, and wait for it while another window has it. Raises FlowBusy after ``seconds``; by default
    after the longest that a window takes, and after three minutes at the earliest."""

    def told(state: RetryCallState) -> None:
        tell(f"waits: {state.outcome and state.outcome.exception()}")

    longest = max(LEAST_SECONDS, flow.window.longest_ms / 1000 + MARGIN_SECONDS)
    return Retrying(
        retry=retry_if_exception_type(FlowBusy),
        wait=wait_exponential(FIRST_SECONDS, MOST_SECONDS),
        stop=stop_after_delay(longest if seconds is None else seconds),
        before_sleep=told,
        reraise=True,
    )(work)

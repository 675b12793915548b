"""Waiting for a flow's lease while another window has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from airmirror.config import Flow
from airmirror.tell import Tell, silent
from airmirror.windows.errors import FlowBusy

LEAST_SECONDS, MARGIN_SECONDS = 180.0, 60.0
FIRST_SECONDS, MOST_SECONDS = 0.5, 5.0  # between two looks

Done = TypeVar("Done")


def when_free(
    flow: Flow, work: Callable[[], Done], tell: Tell = silent, seconds: float | None = None, others: Sequence[Flow] = ()
) -> Done:
    """Do what needs the lease of the flow, or of ``others``, and wait while another window has it. Raises FlowBusy after
    ``seconds``; by default after the longest that a window of that flow takes, and after three minutes at the earliest."""
    longest = {each.name: each.window.longest_ms / 1000 + MARGIN_SECONDS for each in (flow, *others)}

    def told(state: RetryCallState) -> None:
        tell(f"waits: {state.outcome and state.outcome.exception()}")

    def is_over(state: RetryCallState) -> bool:
        busy = state.outcome and state.outcome.exception()
        most = longest[busy.flow if isinstance(busy, FlowBusy) and busy.flow in longest else flow.name]
        return stop_after_delay(max(LEAST_SECONDS, most) if seconds is None else seconds)(state)

    return Retrying(
        retry=retry_if_exception_type(FlowBusy),
        wait=wait_exponential(FIRST_SECONDS, MOST_SECONDS),
        stop=is_over,
        before_sleep=told,
        reraise=True,
    )(work)

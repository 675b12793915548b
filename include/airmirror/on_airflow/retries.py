"""Our errors as Airflow's retry decisions: a transient one is tried again, a final one fails at once with the way out.

Airflow has them from 3.3 on. On 3.2 every error is tried again as often as the task's ``retries`` say.
"""

from __future__ import annotations

from typing import Any

try:
    from airflow.sdk import Context, RetryDecision, RetryPolicy
except ImportError:
    BY_ERROR: dict[str, Any] = {}
else:
    from airmirror.errors import AirmirrorError

    class ByError(RetryPolicy):
        """Asks the error itself. What Airmirror did not raise on purpose is left to the task's ``retries``."""

        def evaluate(
            self, exception: BaseException, try_number: int, max_tries: int, context: Context | None = None
        ) -> RetryDecision:
            if not isinstance(exception, AirmirrorError):
                return RetryDecision.default()
            if exception.transient:
                return RetryDecision.retry(reason=str(exception))
            return RetryDecision.fail(reason=str(exception))

        def serialize(self) -> dict[str, Any]:
            return {"__type": type(self).__name__}

        @classmethod
        def deserialize(cls, data: dict[str, Any]) -> ByError:
            return cls()

    BY_ERROR = {"retry_policy": ByError()}
"""Arguments of an operator whose errors decide about its retries."""

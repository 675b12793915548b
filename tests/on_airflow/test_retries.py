"""Transient errors are tried again, final ones fail at once; what is not ours is left to the task."""

from __future__ import annotations

import airflow.sdk
import pytest

from airmirror.on_airflow.tasks.window import NotMirrored, PartitionsFailed
from airmirror.windows.errors import FlowBusy

if not hasattr(airflow.sdk, "RetryPolicy"):
    pytest.skip("Airflow 3.2 has no retry policies", allow_module_level=True)
from airflow.sdk import RetryAction

from airmirror.on_airflow.retries import ByError


def test_the_error_decides() -> None:
    policy = ByError()
    busy = policy.evaluate(FlowBusy("a->b", "w1", "host:1", 5), 1, 3)
    assert busy.action is RetryAction.RETRY and "wait for it or end it" in str(busy.reason)
    final = policy.evaluate(NotMirrored("a->b", ("orders",)), 1, 3)
    assert final.action is RetryAction.FAIL and "name topics of the source" in str(final.reason)
    assert policy.evaluate(PartitionsFailed("a->b", "w", ("x",), final=True), 1, 3).action is RetryAction.FAIL
    assert policy.evaluate(PartitionsFailed("a->b", "w", ("x",), final=False), 1, 3).action is RetryAction.RETRY
    assert policy.evaluate(OSError("disk"), 1, 3).action is RetryAction.DEFAULT


def test_it_is_part_of_a_serialized_dag() -> None:
    assert isinstance(ByError.deserialize(ByError().serialize()), ByError)

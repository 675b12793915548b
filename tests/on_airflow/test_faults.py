"""Faults in mid-window under a real Airflow; after each every record is compared."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from airmirror.flows.prepare import open_flow
from airmirror_local.proxy import Hold, Proxy
from on_airflow.conftest import AirflowFlow
from support.flows import Mirror
from support.servers import keep
from support.topics import Record, end_offsets, produce

PRODUCE = 0

pytestmark = pytest.mark.timeout(900)


def records(count: int, start: int = 0) -> list[Record]:
    return [
        Record(b"value-%d" % n + b"x" * 400, b"key-%d" % n, (), 1_700_000_000_000 + n)
        for n in range(start, start + count)
    ]


@contextmanager
def held_in_mid_window(flow: AirflowFlow, proxy: Proxy) -> Iterator[str]:
    """A run whose window has committed something and is now kept from writing; its id. Let go at the end."""
    produce(flow.east, flow.topic, records(4000), records_per_batch=50)
    flow.client.unpause(flow.dag_id)
    run_id = flow.client.wait(lambda: flow.client.runs(flow.dag_id))[0]["dag_run_id"]
    hold = Hold(PRODUCE, number=proxy.requests[PRODUCE] + 25)
    proxy.on_request = hold
    try:
        assert hold.reached.wait(300), "the window did not write"
        yield run_id
    finally:
        hold.release.set()
        proxy.cut()


def assert_recovered(flow: AirflowFlow, run_id: str) -> None:
    assert flow.client.wait_for_run(flow.dag_id, run_id) == "success"
    assert flow.started(run_id) > 1, "the window was not interrupted"
    assert flow.assert_equal() == 4000
    assert flow.verified() == 2


@pytest.mark.long  # test_window_tasks has what on_kill ends, test_retries what is tried again
@pytest.mark.flow("terminated")
def test_a_terminated_task_ends_its_window_and_is_tried_again(flow: AirflowFlow, west_proxy: Proxy) -> None:
    with held_in_mid_window(flow, west_proxy) as run_id:
        os.kill(flow.wait_until_running(run_id)["pid"], signal.SIGTERM)
    assert_recovered(flow, run_id)


@pytest.mark.long  # test_pausing has the watch that sees it, test_window_tasks what on_kill ends
@pytest.mark.flow("paused")
def test_pausing_ends_the_window_at_once_and_leaves_nothing_open(flow: AirflowFlow, west_proxy: Proxy) -> None:
    with held_in_mid_window(flow, west_proxy) as run_id:
        flow.wait_until_running(run_id)
        flow.client.pause(flow.dag_id)
        task = flow.client.wait(lambda: _failed(flow, run_id))
    assert task["try_number"] == 1 and "is paused" in flow.log(run_id, "replicate_window")
    remote = f"{flow.source}.{flow.topic}"
    assert end_offsets(flow.west, remote, "read_committed") == end_offsets(flow.west, remote)  # no transaction is open
    # The next window continues from there, whoever runs it.
    place, ledger = flow.under_test.directory / "mirror.properties", f"sqlite:///{flow.under_test.ledger}"
    with open_flow(place, "paused->proxied", ledger) as opened:
        assert Mirror(flow.east, flow.west, flow.topic, opened).run().is_verified
    assert flow.assert_equal() == 4000


def _failed(flow: AirflowFlow, run_id: str) -> dict[str, Any] | None:
    task = flow.client.tasks(flow.dag_id, run_id)["replicate_window"]
    return task if task["state"] == "failed" else None


@pytest.mark.long  # a terminated one is tried again too; tests/windows kills slots and drivers
@pytest.mark.flow("killed")
def test_a_killed_task_is_tried_again(flow: AirflowFlow, west_proxy: Proxy) -> None:
    with held_in_mid_window(flow, west_proxy) as run_id:
        os.kill(flow.wait_until_running(run_id)["pid"], signal.SIGKILL)
    assert_recovered(flow, run_id)


@pytest.mark.long  # for the window it is as if the task alone had ended
@pytest.mark.flow("scheduler")
def test_the_scheduler_is_restarted_in_mid_window(flow: AirflowFlow, west_proxy: Proxy) -> None:
    stack = flow.under_test.stack
    with held_in_mid_window(flow, west_proxy) as run_id:
        stack.kill("scheduler")  # and with it the task that it runs
        stack.restart("scheduler")
        keep(stack.processes["scheduler"])
    assert_recovered(flow, run_id)


@pytest.mark.long  # tests/on_spark has the retries of a window whose server is killed
@pytest.mark.flow("spark")
def test_spark_is_restarted_within_and_between_windows(flow: AirflowFlow, west_proxy: Proxy) -> None:
    with held_in_mid_window(flow, west_proxy) as run_id:
        flow.under_test.restart_spark()
    assert_recovered(flow, run_id)
    flow.under_test.restart_spark()
    produce(flow.east, flow.topic, records(100, 4000))
    _, state = flow.run()
    assert state == "success" and flow.assert_equal() == 4100

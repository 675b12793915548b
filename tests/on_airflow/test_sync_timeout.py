"""``sync_topics`` ends: what it reads of logs may be anybody's."""

from __future__ import annotations

from datetime import timedelta

from airmirror.config import parse
from airmirror.on_airflow.dags.replicate import replicate_dag

TEXT = "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true\n"


def test_sync_topics_ends_after_all_that_it_may_wait_for() -> None:
    task = replicate_dag(parse(TEXT + "admin.timeout.ms = 600000\n", "f").flow("a->b")).get_task("sync_topics")
    assert task.execution_timeout == timedelta(minutes=15 + 4 * 10)

"""Sessions of flows: each in a scheduler pool of its own, and nothing of an earlier window beside a new one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from airmirror.config import parse
from airmirror.on_spark.execute import SparkJobFailed, execute, tag
from airmirror.on_spark.sessions import close, connect
from airmirror.slot.contract import Slot
from airmirror_local.spark_connect import ConnectServer
from support.flows import a_flow

CONFIGURATION = """
clusters = a, b
a.bootstrap.servers = one:9092
b.bootstrap.servers = two:9092
a->b.enabled = true
"""


def test_flows_share_the_cores_by_a_pool_of_their_own(connect_server: ConnectServer) -> None:
    spark = connect(connect_server.url, a_flow("pooled"))
    try:
        assert spark.conf.get("spark.scheduler.pool") == "pooled->west"
        assert spark.conf.get("spark.scheduler.mode") == "FAIR"  # else pools count for nothing
    finally:
        close(spark)


def test_jobs_that_an_earlier_window_has_left_are_interrupted_before_a_new_one() -> None:
    flow = parse(CONFIGURATION, "mirror.properties").flow("a->b")
    slot = Slot(
        flow=flow,
        window="w",
        number=0,
        lease_offset=0,
        max_ms=0,
        max_bytes=None,
        progress_topic="progress",
        progress_partitions=1,
        mapping_topic="mappings",
        partitions=(),
    )
    called: list[tuple[str, Any]] = []

    def create(*_: object, **__: object) -> None:
        called.append(("create", None))
        raise PySparkException("no more is needed")

    spark: Any = SimpleNamespace(
        interruptTag=lambda name: called.append(("interrupt", name)),
        addTag=lambda name: called.append(("tag", name)),
        removeTag=lambda name: called.append(("untag", name)),
        sql=create,
    )
    with pytest.raises(SparkJobFailed):
        execute(spark, [slot])
    name = tag(flow.name)
    assert called == [("interrupt", name), ("tag", name), ("create", None), ("untag", name)]

"""Sessions of flows: each in a scheduler pool of its own, and nothing of an earlier window beside a new one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from airmirror.config import parse
from airmirror.on_spark.execute import SparkJobFailed, execute, own_tag, tag
from airmirror.on_spark.sessions import NO_LIMIT, capacity, close, connect
from airmirror.slot.contract import Slot
from airmirror.windows.demand import Capacity
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


GROWS = {"spark.dynamicAllocation.enabled": "true"}


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"spark.master": "local[*,4]", "spark.cores.max": "40"}, Capacity(6, 6)),
        ({}, Capacity(6, 6)),
        ({"spark.cores.max": "8"}, Capacity(8, 8)),
        ({"spark.executor.cores": "2"}, Capacity(6, 6)),
        ({"spark.executor.cores": "2", "spark.executor.instances": "5"}, Capacity(10, 10)),
        ({"spark.executor.instances": "50", "spark.cores.max": "8"}, Capacity(8, 8)),
        (GROWS, Capacity(6, NO_LIMIT)),
        (GROWS | {"spark.cores.max": "20"}, Capacity(6, 20)),
        (GROWS | {"spark.dynamicAllocation.maxExecutors": "10", "spark.executor.cores": "4"}, Capacity(6, 40)),
        (GROWS | {"spark.dynamicAllocation.maxExecutors": "2"}, Capacity(6, 6)),  # of all cores of a worker
    ],
)
def test_how_many_tasks_run_at_once(settings: dict[str, str], found: Capacity) -> None:
    """``6`` is what has registered; with executors that come and go it is asked for, else only where no setting says it."""
    plan = "== Physical Plan ==\n*(1) Range (0, 1, step=1, splits=6)\n\n"
    spark: Any = SimpleNamespace(
        conf=SimpleNamespace(
            get=lambda name, default: ({"spark.master": "spark://m:7077"} | settings).get(name, default)
        ),
        sql=lambda text: SimpleNamespace(collect=lambda: [(plan,)]),
    )
    assert capacity(spark) == found


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
    (_, own) = called[3]
    names = [tag(flow.name), own_tag(flow.name), own]
    assert called == [
        ("interrupt", tag(flow.name)),
        *(("tag", name) for name in names),
        ("create", None),
        *(("untag", name) for name in names),
    ]

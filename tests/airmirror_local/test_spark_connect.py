"""The Spark Connect server runs Python tasks in this Python, two at once, and tries a task again whose worker dies."""

from __future__ import annotations

import sys

import pytest

from airmirror_local.spark_connect import ConnectServer


@pytest.mark.long  # tests/on_spark has windows in it, and one whose worker is killed
def test_tasks_run_in_this_python_and_are_tried_again(connect_server: ConnectServer) -> None:
    from pyspark.sql import SparkSession

    def versions(batches):  # type: ignore[no-untyped-def]
        import os
        import signal
        import sys

        import pyarrow
        from pyspark import TaskContext

        if TaskContext.get().attemptNumber() == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"python": [sys.version], "attempt": [1]})

    session = SparkSession.builder.remote(connect_server.url).create()
    try:
        rows = session.range(0, 1, 1, 1).mapInArrow(versions, "python string, attempt long").collect()
    finally:
        session.stop()
    assert [(row.python, row.attempt) for row in rows] == [(sys.version, 1)]

"""Comparing on Spark: the parts of two clusters' logs are compared by tasks of one job, each on its own."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from pyspark.sql import SparkSession

from airmirror.clusters.security.settings import self_contained
from airmirror.config import Cluster
from airmirror.errors import AirmirrorError
from airmirror.evidence.found import Findings
from airmirror.evidence.parts import Execute, Part, View
from airmirror.on_spark import sessions
from airmirror.on_spark.compare_results import decode
from airmirror.on_spark.execute import in_tasks, not_begun, reason, run_tasks
from airmirror.on_spark.results import BadAnswer
from airmirror.on_spark.sessions import ComparedClusters


class CompareJobFailed(AirmirrorError, transient=True):
    """A Spark job of a comparison that did not end well. Nothing was written: it can be run again."""

    says = "the Spark job of the comparison failed: {0.reason}"
    reason: str


@contextmanager
def on_spark(source: Cluster, target: Cluster, view: View, url: str | None) -> Iterator[Execute]:
    """Give the function that compares parts on a Spark Connect server or (no URL) on Spark in this process.

    Raises SparkUnavailable, SparkRefused, UnsupportedClientSetting.
    """
    ends = ComparedClusters(self_contained(source), self_contained(target))
    spark = sessions.in_process() if url is None else sessions.connect(url, ends)
    try:
        yield partial(compare_parts, spark, ends, view)
    finally:
        sessions.close(spark)


def compare_parts(spark: SparkSession, ends: ComparedClusters, view: View, parts: Sequence[Part]) -> list[Findings]:
    """Compare every part in a task of its own; what is secret is part of the function, as in ``execute``.

    Raises CompareJobFailed, LibraryAltered, OtherPython, MissingPackage, or what a part's comparison raises.
    """
    if not parts:
        return []
    tag = f"airmirror compare {uuid.uuid4().hex}"
    try:
        spark.addTag(tag)
        work = in_tasks(pickle.dumps((ends.source, ends.target, view)), "run_parts")
        return [decode(answer) for answer in run_tasks(spark, parts, work)]
    except sessions.SPARK_ERRORS as error:
        said = str(error) or type(error).__name__
        raise not_begun(ends.name, said) or CompareJobFailed(reason(said)) from error
    except BadAnswer as error:
        raise CompareJobFailed(f"the answer of a task can't be used: {error}") from error
    except BaseException as error:
        if not isinstance(error, Exception):  # Ctrl-C, or the time-out of Airflow's task
            with suppress(*sessions.SPARK_ERRORS):  # a server that is gone runs nothing
                spark.interruptTag(tag)
        raise
    finally:
        spark.removeTag(tag)

"""Processes of tests, from multiprocessing's one fork server: it has imported what they run, and has none of our threads."""

from __future__ import annotations

import multiprocessing

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(  # no module of tests/: Python 3.11's fork server does not look there
    [
        "airmirror.flows.prepare",
        *(f"airmirror.runbooks.{name}.shown" for name in ("failover", "failback", "migration", "takeover")),
        "airmirror.slot.attempts",
        "airmirror.windows.window",
        "airmirror.wire.transcode",
        "airmirror.on_spark.execute",
        "confluent_kafka.admin",
        "javaproperties",
        "pytest",
    ]
)

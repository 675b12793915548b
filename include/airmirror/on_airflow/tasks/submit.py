"""A window by spark-submit, for Spark connections that are not Spark Connect: local, standalone, YARN, Kubernetes masters.

The application gets the window's id and reports through the mapping topic; what is secret travels in a file of mode 0600, or in
a Kubernetes secret.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from itertools import count

import javaproperties
from airflow.providers.apache.spark.hooks import spark_submit
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException

from airmirror.errors import AirmirrorError
from airmirror.flows.audit import Range
from airmirror.flows.prepare import Opened, dry_run
from airmirror.flows.selection import Selection
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.tasks.driver import (
    CONFIG,
    RANGES,
    SECRETS,
    DriverFiles,
    files_here,
    files_in_secret,
    files_uploaded,
)
from airmirror.on_airflow.tasks.telling import tell_result
from airmirror.on_airflow.tasks.window import opened_flow
from airmirror.on_spark import clusters, ranges
from airmirror.on_spark.job import CLUSTERS, FINAL, LEDGER
from airmirror.on_spark.library import digest
from airmirror.windows.results import WindowResult, rows_of


class SubmittedWindowFailed(AirmirrorError):
    """A window that spark-submit ran and that did not end well; what its slots committed counts."""

    flow: str
    window: str
    reason: str
    again: bool

    @property
    def transient(self) -> bool:  # type: ignore[override]
        return self.again

    says = (
        "flow {0.flow!r}: spark-submit of window {0.window!r} failed; the lines above that begin with 'airmirror:' say why "
        "({0.reason})"
    )


class LedgerOutOfReach(AirmirrorError):
    """A driver that runs elsewhere can't read a ledger that is a file here."""

    conn_id: str
    says = (
        "Spark connection {0.conn_id!r} has deploy mode cluster and the ledger is a SQLite file: a driver on another machine "
        f"can't open it; set {LEDGER} to a PostgreSQL URL, or use deploy mode client"
    )


class DriverNotPossible(AirmirrorError):
    """A standalone master runs no Python drivers."""

    conn_id: str
    says = (
        "Spark connection {0.conn_id!r} has deploy mode cluster and a standalone master, on which Spark runs no Python "
        "drivers; use deploy mode client, or a Spark Connect server in front of that cluster"
    )


class SparkSubmitMissing(AirmirrorError):
    """A worker that has no spark-submit."""

    conn_id: str
    binary: str
    says = (
        "Spark connection {0.conn_id!r} needs {0.binary}, which is not on this worker's PATH: PySpark, of Airmirror's extra "
        "'spark', contains it"
    )


class KubernetesClientMissing(AirmirrorError):
    """A Kubernetes master, and an Airflow that can't speak to one."""

    conn_id: str
    says = (
        "Spark connection {0.conn_id!r} has a Kubernetes master, for which Airflow lacks a package; on every machine that "
        "runs tasks: pip install apache-airflow-providers-cncf-kubernetes"
    )


def submitting(
    deployment: Deployment,
    name: str,
    window: str,
    conn_id: str,
    selection: Selection,
    only_up_to: SubmissionBounds | None = None,
) -> Submission:
    """Prepare a submission; nothing is started yet. Raises LedgerOutOfReach, DriverNotPossible, KubernetesClientMissing."""
    connection = BaseHook.get_connection(conn_id)
    extra, host = connection.extra_dejson, connection.host or ""
    is_cluster = extra.get("deploy-mode") == "cluster"
    on_kubernetes = connection.conn_type == "k8s" or host.startswith("k8s://")
    if on_kubernetes and not hasattr(spark_submit, "kube_client"):  # it imports it if it can
        raise KubernetesClientMissing(conn_id)
    if is_cluster and (host.startswith("spark://") or ("://" not in host and connection.port)):
        raise DriverNotPossible(conn_id)
    if is_cluster and deployment.ledger.startswith("sqlite"):
        raise LedgerOutOfReach(conn_id)
    namespace = str(extra.get("namespace") or "default") if is_cluster and on_kubernetes else None
    return Submission(
        deployment, name, window, conn_id, selection, is_cluster=is_cluster, namespace=namespace, only_up_to=only_up_to
    )


@dataclass(frozen=True)
class SubmissionBounds:
    """The bounds of a submission: the ranges, found when it begins, and whether the offsets before the first are wanted."""

    ranges: Callable[[Opened], Sequence[Range]]
    before: bool


@dataclass
class Submission:
    """One window, submitted to a Spark connection. ``namespace``: where its driver is a pod."""

    deployment: Deployment
    flow: str
    window: str
    conn_id: str
    selection: Selection
    is_cluster: bool
    namespace: str | None = None
    only_up_to: SubmissionBounds | None = None
    _hook: SparkSubmitHook | None = None
    _given: ExitStack = field(default_factory=ExitStack)  # the driver's files

    def run(self) -> WindowResult:
        """Submit, wait, and read from the ledger what was done. Raises SubmittedWindowFailed."""
        begun = time.monotonic()
        with opened_flow(self.deployment, self.flow, self.selection) as opened, self._given:
            files = self._given.enter_context(self._files(opened))
            arguments = {
                "--config": files.paths[CONFIG],
                "--flow": self.flow,
                "--window": self.window,
                "--secrets": files.paths[SECRETS],
                "--library": digest(),
                "--topics": ",".join(self.selection.topics),
                "--partitions": ",".join(map(str, self.selection.partitions)),
                "--verify": self.selection.verify or "",
                "--ranges": files.paths.get(RANGES, ""),
                "--expectations": self._expectations(),
            }
            given = [part for option, value in arguments.items() if value for part in (option, value)]
            before = ["--before"] if self.only_up_to and self.only_up_to.before else []
            self._hook = SparkSubmitHook(
                conn_id=self.conn_id,
                name=f"airmirror {self.flow} {self.window}",
                application_args=[*given, "--no-advance", *before],
                **files.options,
            )
            try:
                self._hook.submit(files.application)
            except FileNotFoundError as error:
                raise SparkSubmitMissing(self.conn_id, str(error.filename)) from error
            except AirflowException as error:
                submitted = getattr(self._hook._submit_sp, "returncode", None)
                again = FINAL not in (files.ended(), submitted)
                raise SubmittedWindowFailed(self.flow, self.window, str(error).splitlines()[0][:500], again) from error
            files.ended()
            result = self._result(opened, time.monotonic() - begun)
        tell_result(result)
        return result

    def kill(self) -> None:
        """End the driver on this machine, on YARN, or in its pod; the fence ends what it leaves. Its files go first: Airflow
        waits five seconds."""
        try:
            self._given.close()
        finally:
            if self._hook is not None:
                self._hook.on_kill()

    def _expectations(self) -> str:
        """The gate's, to judge by while the window follows the log. A driver elsewhere does not have them: it does not follow."""
        return "" if self.is_cluster else str(self.deployment.expectations)

    def _result(self, opened: Opened, seconds: float) -> WindowResult:
        _, planned = dry_run(opened)  # reads what the window has written to the mapping topic
        flow = opened.flow
        rows = tuple(row for name in self._windows(opened) for row in rows_of(flow, name, opened.ledger, planned))
        size = sum(row.bytes for row in rows)
        # The application can't say that it was cut: where work is left, its time or its bytes tell. While it follows the log
        # neither does.
        bounded = flow.window.follow_ms < flow.window.max_ms <= seconds * 1000 or (
            not flow.window.follow_ms and flow.window.max_bytes is not None and size >= flow.window.max_bytes
        )
        is_cut = (
            self.only_up_to is None
            and bounded
            and any(item.has_work and self.selection.takes(item.key) for item in planned)
        )
        return WindowResult(self.flow, self.window, rows, len(planned), seconds, phases={}, is_cut=is_cut)

    def _windows(self, opened: Opened) -> Iterator[str]:
        """The windows that the application has run: one, or as many as the ranges have taken."""
        yield self.window
        for number in count(2):
            name = f"{self.window}-{number}"
            if self.only_up_to is None or next(opened.ledger.of_window(name), None) is None:
                return
            yield name

    def _files(self, opened: Opened) -> AbstractContextManager[DriverFiles]:
        """Give the driver its files, where it runs; they are removed afterwards."""
        in_pod = self.namespace is not None
        # A pod has neither this environment nor these files: it is given every setting as it is here.
        settings = {each.key: each.value for each in opened.configuration.settings} if in_pod else {}
        settings |= {LEDGER: self.deployment.ledger, CLUSTERS: clusters.as_text(opened, in_pod=in_pod)}
        contents = {SECRETS: javaproperties.dumps(settings, timestamp=None).encode()}
        if self.only_up_to is not None:
            contents[RANGES] = ranges.as_text(self.only_up_to.ranges(opened)).encode()
        if not self.is_cluster:
            return files_here(contents, self.deployment.config)
        contents[CONFIG] = self.deployment.config.read_bytes()
        return files_uploaded(contents) if self.namespace is None else files_in_secret(contents, self.namespace)

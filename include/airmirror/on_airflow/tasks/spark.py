"""The place of a window's slots, by the type of the Spark connection: Spark Connect, or spark-submit for all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from airmirror.errors import AirmirrorError
from airmirror.flows.selection import Selection
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.tasks import window as work
from airmirror.windows.results import WindowResult

if TYPE_CHECKING:
    from airmirror.on_airflow.tasks.submit import SubmissionBounds

CONNECT, SUBMIT = "spark_connect", ("spark", "yarn", "k8s", "local")


class BadSparkConnection(AirmirrorError):
    """An Airflow connection that windows can't be run with."""

    conn_id: str
    reason: str
    says = (
        "Spark connection {0.conn_id!r} (spark.conn.id): {0.reason}; make one of type "
        f"{CONNECT!r} (host and port of a Spark Connect server) or {SUBMIT[0]!r} (a master for spark-submit)"
    )


@dataclass(frozen=True)
class Windows:
    """The ways to run a window, and to end it from outside."""

    replicate: Callable[[], WindowResult]
    interrupt: Callable[[], None]


def windows_of(
    conn_id: str,
    deployment: Deployment,
    flow: str,
    window: str,
    selection: Selection,
    over_connect: Callable[[Deployment, str, str, str, Selection], WindowResult],
    only_up_to: SubmissionBounds | None = None,
) -> Windows:
    """Windows by the connection's type: ``over_connect`` runs them on a Spark Connect server, anything else is submitted.

    Raises BadSparkConnection, LedgerOutOfReach, DriverNotPossible.
    """
    if kind_of(conn_id) == CONNECT:
        url = SparkConnectHook(conn_id).get_connection_url()
        of_window = (deployment, flow, window, url, selection)
        return Windows(partial(over_connect, *of_window), partial(work.interrupt, *of_window))
    from airmirror.on_airflow.tasks.submit import submitting

    submission = submitting(
        deployment=deployment, name=flow, window=window, conn_id=conn_id, selection=selection, only_up_to=only_up_to
    )

    def interrupt() -> None:
        try:
            submission.kill()
        finally:  # whatever becomes of the driver: what it writes from now on counts for nothing
            work.interrupt(deployment, flow, window, None, selection)

    return Windows(submission.run, interrupt)


def kind_of(conn_id: str) -> str:
    """The connection's type: CONNECT, or one of SUBMIT. Raises BadSparkConnection."""
    try:
        kind = str(BaseHook.get_connection(conn_id).conn_type)
    except AirflowNotFoundException as error:
        raise BadSparkConnection(conn_id, "there is no such connection") from error
    if kind != CONNECT and kind not in SUBMIT:
        raise BadSparkConnection(conn_id, f"its type is {kind!r}")
    return kind

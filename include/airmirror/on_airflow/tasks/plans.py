"""Documents in Airflow: findings in the log, pages that are kept. Loaded in tasks only."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from airmirror.on_airflow.deployment import Deployment
from airmirror.report.document import Document, Finding
from airmirror.report.errors import BadKey
from airmirror.report.files import write_document
from airmirror.report.kept import PAGES_KEPT, file_name, keep_newest
from airmirror.report.signing import Signer, signer_of_pem

log = logging.getLogger(__name__)


def log_findings(findings: Iterable[Finding]) -> None:
    """Tell each finding in the task's log."""
    for each in findings:
        level = logging.INFO if each.level == "ok" else logging.WARNING
        log.log(level, "%s %s: %s; %s", each.level, each.what, each.evidence, each.way_out)


def keep_document(
    deployment: Deployment, kind: str, flow: str, run: str, made: Document, show: Callable[[Path], None], done: str = ""
) -> None:
    """Write a run's document among those of its ``kind``, of which the newest are kept; ``show`` hears of its page.

    ``done``: what was carried out, of an outcome. Raises ReportNotWritten, BadKey.
    """
    key = signer(deployment)
    directory = deployment.data_docs / kind / flow.replace("->", ".")
    page, *_ = write_document(made, directory / file_name(run), key, done)
    show(page)
    keep_newest(directory, PAGES_KEPT)


def signer(deployment: Deployment) -> Signer | None:
    """Who signs what is written; None: nobody. Raises BadKey."""
    if not deployment.report_conn_id:
        return None
    name = f"connection {deployment.report_conn_id!r}"
    try:
        pem = BaseHook.get_connection(deployment.report_conn_id).password or ""
    except AirflowNotFoundException as error:
        raise BadKey(name, "there is no such connection") from error
    return signer_of_pem(pem.encode(), f"{name} (its password)")

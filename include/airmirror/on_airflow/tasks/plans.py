"""Documents in Airflow: findings in the log, pages that are kept. Loaded in tasks only."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from airmirror.ledger import Ledger, pages
from airmirror.ledger.pages import PagePlace
from airmirror.on_airflow.deployment import Deployment
from airmirror.report.document import Document, Finding
from airmirror.report.errors import BadKey
from airmirror.report.signing import Signer, signer_of_pem

log = logging.getLogger(__name__)
Show = Callable[[str], None]  # hears of the path of a page


def log_findings(findings: Iterable[Finding]) -> None:
    for each in findings:
        level = logging.INFO if each.level == "ok" else logging.WARNING
        log.log(level, "%s %s: %s; %s", each.level, each.what, each.evidence, each.way_out)


def keep_document(deployment: Deployment, place: PagePlace, run: str, made: Document, show: Show) -> None:
    """Keep a run's document in the ledger; ``show`` hears of its page. Raises PageTooLarge, BadKey, LedgerUnavailable."""
    key = signer(deployment)
    with Ledger(deployment.ledger) as ledger:
        show(pages.keep_document(ledger.engine, place, run, made, key))


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

"""``GET /airmirror/metrics``, for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from airmirror.ledger import Ledger
from airmirror.on_airflow.deployment import deployment
from airmirror.web.collector import LedgerCollector, exposition
from airmirror.web.rates import RateLimit
from airmirror.web.tokens import caller_of


def metrics_router() -> APIRouter:
    """The route, for the caller with the token of the deployment's metrics connection."""
    scraper = Depends(caller_of(lambda: (deployment().metrics_conn_id,), RateLimit(600)))
    router = APIRouter()

    @router.get("/metrics", dependencies=[scraper])
    def metrics() -> Response:
        """All metrics, in Prometheus's text format."""
        ledger = Ledger(deployment().ledger)
        try:
            return Response(exposition(LedgerCollector(ledger)), media_type=CONTENT_TYPE_LATEST)
        finally:
            ledger.close()

    return router

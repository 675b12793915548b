"""``GET /airmirror/metrics``, for Prometheus."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Query, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from airmirror.ledger import Ledger
from airmirror.on_airflow.deployment import deployment
from airmirror.web.collector import LedgerCollector, exposition
from airmirror.web.mirrormaker_names import FORMATS, MirrorMakerCollector
from airmirror.web.rates import RateLimit
from airmirror.web.tokens import caller_of


def metrics_router() -> APIRouter:
    """The route, for the caller with the token of the deployment's metrics connection."""
    scraper = Depends(caller_of(lambda: (deployment().metrics_conn_id,), RateLimit(600)))
    router = APIRouter()

    @router.get("/metrics", dependencies=[scraper])
    def metrics(formats: Annotated[str, Query(alias="metric.names.formats", max_length=100)] = "") -> Response:
        """All metrics, in Prometheus's text format; those of MirrorMaker 2 too, in the formats that are asked for."""
        wanted = {name.strip() for name in formats.split(",")} - {""}
        if unknown := sorted(wanted - set(FORMATS)):
            raise HTTPException(400, f"metric.names.formats: not {unknown[0]!r}, but legacy, new or legacy,new")
        with Ledger(deployment().ledger) as ledger:
            collectors = [LedgerCollector(ledger), MirrorMakerCollector(ledger, sorted(wanted))]
            return Response(exposition(*collectors), media_type=CONTENT_TYPE_LATEST)

    return router

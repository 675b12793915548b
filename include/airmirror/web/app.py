"""The app's routes: pages, and ``GET /airmirror/metrics`` for Prometheus.

Without its own documentation pages: what FastAPI shows by itself is open to everybody.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from airmirror.config import ConfigurationError
from airmirror.ledger import Ledger
from airmirror.ledger.pages import PAGE, page_at
from airmirror.on_airflow.deployment import deployment
from airmirror.web.alerts import alerts_router
from airmirror.web.collector import LedgerCollector, exposition
from airmirror.web.console.opened import flows_of
from airmirror.web.console.routes import console_router, ledger_here
from airmirror.web.mirrormaker_names import FORMATS, MirrorMakerCollector
from airmirror.web.security import may_see_plugins
from airmirror.web.tokens import RateLimit, caller_of

# The pages need nothing but themselves: were a text on them ever taken for markup, it could do nothing here.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'; sandbox"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private",
}


def build_app() -> FastAPI:
    """The app with every route guarded: those for people by Airflow's own rules, those for programs by their tokens."""
    app = FastAPI(title="Airmirror", docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(_pages())
    app.include_router(alerts_router())
    app.include_router(metrics_router())
    app.include_router(console_router())
    return app


def _pages() -> APIRouter:
    router = APIRouter(dependencies=[may_see_plugins()])

    @router.get("/pages/{kind}/{flow}/{name}")
    def page(kind: str, flow: str, name: str) -> Response:
        """A page of the gate's Data Docs, a plan or a report."""
        content = None
        if name.endswith(PAGE) and "\0" not in kind + flow + name:  # which PostgreSQL takes for no text
            with ledger_here() as ledger:
                content = page_at(ledger.engine, kind, flow, name)
        if content is None:
            raise HTTPException(404, "no such page; old ones are removed", HEADERS)
        return Response(content, media_type="text/html; charset=utf-8", headers=HEADERS)

    return router


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
            ours = LedgerCollector(ledger, flows=_configured())
            collectors = [ours, MirrorMakerCollector(ledger, sorted(wanted))]
            return Response(exposition(*collectors), media_type=CONTENT_TYPE_LATEST)

    return router


def _configured() -> set[str] | None:
    """The names of the flows that have windows, or should have: what is wrong with one does not hide it. None: not known."""
    try:
        known = flows_of(deployment().config)
    except (ConfigurationError, OSError):
        return None
    return {flow.name for flow in known.by_dag.values()}.union(known.broken)

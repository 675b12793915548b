"""The app's routes: pages, and ``GET /airmirror/metrics`` for Prometheus.

Without its own documentation pages: what FastAPI shows by itself is open to everybody.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Path, Query, Response
from fastapi.responses import FileResponse
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from airmirror.ledger import Ledger
from airmirror.on_airflow.deployment import deployment
from airmirror.web.alerts import alerts_router
from airmirror.web.collector import LedgerCollector, exposition
from airmirror.web.console.routes import console_router
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

    @router.get("/data-docs/{page:path}")
    def data_docs(page: Annotated[str, Path()]) -> FileResponse:
        """A page of the gate's Data Docs, or the report of an audit."""
        file = _page(deployment().data_docs.resolve(), page)
        if file is None:
            raise HTTPException(404, "no such page; old ones are removed", HEADERS)
        return FileResponse(file, media_type="text/html; charset=utf-8", headers=HEADERS)

    return router


def _page(root: FilePath, page: str) -> FilePath | None:
    """The file of a page, which lies below ``root``; None: there is none."""
    try:
        file = (root / page).resolve()
        return file if file.suffix == ".html" and file.is_relative_to(root) and file.is_file() else None
    except (OSError, ValueError):  # no name of a file: too long, or with a NUL
        return None


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

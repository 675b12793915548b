"""The app's routes. Without its own documentation pages: what FastAPI shows by itself is open to everybody."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated

from fastapi import APIRouter, FastAPI, HTTPException, Path
from fastapi.responses import FileResponse

from airmirror.on_airflow.deployment import deployment
from airmirror.web.alerts import alerts_router
from airmirror.web.console.routes import console_router
from airmirror.web.metrics import metrics_router
from airmirror.web.security import may_see_plugins

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

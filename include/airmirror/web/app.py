"""The app's routes. Without its own documentation pages: what FastAPI shows by itself is open to everybody."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, FastAPI, HTTPException, Path
from fastapi.responses import FileResponse

from airmirror.on_airflow.deployment import deployment
from airmirror.web.alerts import alerts_router
from airmirror.web.metrics import metrics_router
from airmirror.web.security import may_see_plugins


def build_app() -> FastAPI:
    """The app with every route guarded: those for people by Airflow's own rules, those for programs by their tokens."""
    app = FastAPI(title="Airmirror", docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(_pages())
    app.include_router(alerts_router())
    app.include_router(metrics_router())
    return app


def _pages() -> APIRouter:
    router = APIRouter(dependencies=[may_see_plugins()])

    @router.get("/data-docs/{page:path}")
    def data_docs(page: Annotated[str, Path()]) -> FileResponse:
        """A page of the gate's Data Docs."""
        root = deployment().data_docs.resolve()
        file = (root / page).resolve()
        if not file.is_relative_to(root) or not file.is_file():
            raise HTTPException(404, "no such page; old ones are removed")
        return FileResponse(file)

    return router

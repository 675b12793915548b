"""The Airflow plugin: the app, mounted under /airmirror, and the console's pages.

Every task loads the plugins too and has no use for the app: it is built when the API server is first asked. It took 0.6 s of
processor time in each of a run's tasks.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from airflow.plugins_manager import AirflowPlugin

from airmirror.web.console.registration import external_views, react_apps

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """The app as the API server calls it."""
    await _built()(scope, receive, send)


@cache
def _built() -> FastAPI:
    from airmirror.web.app import build_app

    return build_app()


class AirmirrorPlugin(AirflowPlugin):
    name = "airmirror"
    fastapi_apps: list[Any] = [{"app": app, "url_prefix": "/airmirror", "name": "Airmirror"}]  # noqa: RUF012 - as Airflow declares it
    react_apps: list[Any] = react_apps()
    external_views: list[Any] = external_views()

"""The Airflow plugin: the app, mounted under /airmirror."""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from airmirror.web.app import build_app


class AirmirrorPlugin(AirflowPlugin):
    """What Airflow finds of Airmirror."""

    name = "airmirror"
    fastapi_apps: list[Any] = [{"app": build_app(), "url_prefix": "/airmirror", "name": "Airmirror"}]  # noqa: RUF012 - as Airflow declares it

"""What the plugin registers of the console. Loaded in every process of Airflow: the standard library only.

A bundle that Airflow can't load shows "404" on top of its home page: so nothing is registered that was not built.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DIST = Path(__file__).parent / "dist"
SETTING = "AIRMIRROR_CONSOLE"
WAYS = ("page", "frame", "off")


def manifest(dist: Path = DIST) -> dict[str, str]:
    """The files that were built, by name; none where the console was not. Read again each time: it may be built meanwhile."""
    try:
        found = json.loads((dist / "manifest.json").read_text())
    except FileNotFoundError:
        return {}
    return {str(name): str(file) for name, file in found.items()}


def way(environment: Mapping[str, str] = os.environ) -> str:
    """How Airflow shows the console (``AIRMIRROR_CONSOLE``): a ``page`` of its own, a ``frame``, or ``off``; unknown: a page."""
    said = environment.get(SETTING, "").strip().lower()
    return said if said in WAYS else WAYS[0]


def react_apps(dist: Path = DIST, shown: str | None = None) -> list[dict[str, Any]]:
    """Return the apps for Airflow's plugin manager. No address begins with a slash: Airflow may have a base path."""
    files = manifest(dist)
    if not files or (shown or way()) != "page":
        return []
    common = {"bundle_url": f"airmirror/console/static/{files['host']}"} | _icons(files)
    return [
        common | {"name": "Airmirror", "url_route": "airmirror", "destination": "nav", "nav_top_level": True},
        common | {"name": "Mirror", "url_route": "airmirror-flow", "destination": "dag"},
        common | {"name": "Airmirror card", "url_route": "airmirror-card", "destination": "dashboard"},
    ]


def external_views(dist: Path = DIST, shown: str | None = None) -> list[dict[str, Any]]:
    """Return the frames for Airflow's plugin manager, which know nothing of what its page shares."""
    files = manifest(dist)
    if not files or (shown or way()) != "frame":
        return []
    nav = {"name": "Airmirror", "url_route": "airmirror-frame", "destination": "nav", "nav_top_level": True}
    dag = {"name": "Mirror", "url_route": "airmirror-flow-frame", "destination": "dag"}
    return [
        _icons(files) | nav | {"href": "airmirror/console/frame"},
        _icons(files) | dag | {"href": "airmirror/console/frame?dag={DAG_ID}"},
    ]


def _icons(files: Mapping[str, str]) -> dict[str, str]:
    return {
        "icon": f"airmirror/console/static/{files['icon']}",
        "icon_dark_mode": f"airmirror/console/static/{files['icon-dark']}",
    }

"""The console's built files, and the frame's document.

Airflow reads the plugin's addresses once: a name with an old hash, which an API server gave out that was not restarted since the
bundles were built again, gets the current file.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

from fastapi import HTTPException
from fastapi.responses import FileResponse, HTMLResponse

from airmirror.web.console.registration import DIST, manifest

MEDIA = {"js": "text/javascript", "svg": "image/svg+xml"}
# The frame's document. (A page of Airflow's own has no policy, and a plugin's app lives under that.)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'self'; "
    "form-action 'none'; frame-ancestors 'self'"
)
_NAME = re.compile(r"(host|frame|icon|icon-dark)-[0-9a-f]{1,64}\.(js|svg)")


def static(file: str, dist: Path = DIST) -> FileResponse:
    """A built file, to be kept for a year; of an unknown hash the current one, not to be kept. Raises HTTPException, 404."""
    asked, files = _NAME.fullmatch(file), manifest(dist)
    current = files.get(asked[1]) if asked else None
    if asked is None or current is None or not current.endswith(asked[2]):
        raise HTTPException(404, "no such file of the console", {"Cache-Control": "no-store"})
    known = current == file
    headers = {
        "Cache-Control": "private, max-age=31536000, immutable" if known else "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return FileResponse(dist / current, media_type=MEDIA[asked[2]], headers=headers)


def frame(root_path: str, dist: Path = DIST) -> HTMLResponse:
    """The frame's document; ``root_path``: Airflow's base path and where the app is mounted. Raises HTTPException, 404."""
    files = manifest(dist)
    if "frame" not in files:
        raise HTTPException(404, "the console is not built: make install", {"Cache-Control": "no-store"})
    base = html.escape(root_path.removesuffix("/airmirror") + "/", quote=True)
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><base href="{base}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Airmirror</title></head>'
        f'<body><div id="root"></div><script type="module" src="airmirror/console/static/{files["frame"]}"></script>'
        "</body></html>"
    )
    headers = {
        "Content-Security-Policy": POLICY,
        "Cache-Control": "no-store",
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }
    return HTMLResponse(page, headers=headers)

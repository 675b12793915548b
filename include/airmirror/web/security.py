"""The permissions of pages: Airflow's own rules. The only place that imports what Airflow does not promise to keep."""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import requires_access_view
from fastapi import Depends


def may_see_plugins() -> Any:
    """A dependency: the caller has logged in to Airflow and may see its plugins; else 401 or 403."""
    return Depends(requires_access_view(AccessView.PLUGINS))
